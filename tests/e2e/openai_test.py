"""The `openai` client against a running server: what people's programs do."""
import openai
import pytest


@pytest.fixture(scope="module")
def client(server):
    import httpx2 as httpx  # the client library that openai uses

    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", http_client=httpx.Client(trust_env=False), max_retries=0)


def test_models_lists_the_served_name(client):
    models = client.models.list().data
    assert [m.id for m in models] == ["smol"] and models[0].owned_by == "vllm"


def test_a_completion_goes_on(client):
    answer = client.completions.create(model="smol", prompt="The capital of France is", max_tokens=4, temperature=0)
    assert "Paris" in answer.choices[0].text
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 4


def test_a_streamed_completion_equals_the_whole_one(client):
    args = dict(model="smol", prompt="Once upon a time", max_tokens=24, temperature=0)
    whole = client.completions.create(**args).choices[0].text
    pieces = list(client.completions.create(**args, stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].text for p in pieces if p.choices) == whole
    assert pieces[-1].choices == [] and pieces[-1].usage.completion_tokens == 24


def test_several_prompts_and_choices_are_numbered(client):
    answer = client.completions.create(model="smol", prompt=["One", "Two"], n=2, max_tokens=3, temperature=1, seed=5)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]


def test_a_chat_answers(client):
    answer = client.chat.completions.create(model="smol", temperature=0, max_completion_tokens=32,
                                            messages=[{"role": "user", "content": "What is the capital of France?"}])
    message = answer.choices[0].message
    assert message.role == "assistant" and "Paris" in message.content


def test_a_streamed_chat_equals_the_whole_one(client):
    args = dict(model="smol", temperature=0, max_tokens=24, messages=[{"role": "user", "content": "Say something short."}])
    whole = client.chat.completions.create(**args).choices[0]
    chunks = list(client.chat.completions.create(**args, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason
    assert len({c.id for c in chunks}) == 1


def test_logprobs_of_a_completion_are_sorted_and_negative(client):
    answer = client.completions.create(model="smol", prompt="The sky is", max_tokens=3, temperature=0, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == 3 and all(value <= 0 for value in logprobs.token_logprobs)
    for token, top in zip(logprobs.tokens, logprobs.top_logprobs):
        assert len(top) >= 2 and max(top, key=top.get) == token  # greedy: the sampled token is the likeliest


def test_logprobs_of_a_chat_carry_bytes(client):
    answer = client.chat.completions.create(model="smol", temperature=0, max_tokens=3, logprobs=True, top_logprobs=2,
                                            messages=[{"role": "user", "content": "Hi"}])
    content = answer.choices[0].logprobs.content
    assert b"".join(bytes(entry.bytes) for entry in content).decode(errors="ignore") in answer.choices[0].message.content
    assert all(len(entry.top_logprobs) == 2 for entry in content)


def test_echo_scores_the_prompt(client):
    answer = client.completions.create(model="smol", prompt="The sky is blue", echo=True, max_tokens=0, logprobs=1)
    choice = answer.choices[0]
    assert choice.text == "The sky is blue"
    assert choice.logprobs.token_logprobs[0] is None and all(v < 0 for v in choice.logprobs.token_logprobs[1:])
    assert answer.usage.completion_tokens == 0


def test_leaving_a_stream_ends_its_request(client, server):
    import time

    stream = client.completions.create(model="smol", prompt="Count:", max_tokens=3000, stream=True,
                                       extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    deadline = time.monotonic() + 20
    while server.metric("vllm:num_requests_running") > 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.completions.create(model="other", prompt="x")
    assert error.value.body["message"] == "The model `other` does not exist. Valid aliases: smol."


def test_a_bad_field_is_a_bad_request(client):
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="smol", prompt="x", temperature=-1)


def test_tools_without_a_parser_get_vllms_answer(client):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="smol", messages=messages, tools=[tool])
    assert '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set' in error.value.body["message"]
    answer = client.chat.completions.create(model="smol", messages=messages, tools=[tool], tool_choice="none", max_tokens=2)
    assert answer.choices[0].message.tool_calls in (None, [])


CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo", "days": 2}'}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}, {"content": []}, {"content": PARTS}])
@pytest.mark.parametrize("calls", [{"tool_calls": [CALL]}, {"tool_calls": []}, {"tool_calls": None}, {}])
def test_a_tool_round_trip_with_any_content_is_taken(client, content, calls):
    messages = [{"role": "developer", "content": "Be brief.", "name": "dev"}, {"role": "user", "content": "Weather?", "name": "ann"},
                {"role": "assistant", **content, **calls}]
    if calls.get("tool_calls"):
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": "[3, 4]"})
    messages.append({"role": "user", "content": "Thanks."})
    answer = client.chat.completions.create(model="smol", messages=messages, tools=[TOOL], tool_choice="none", max_tokens=2, store=True,
                                            metadata={"a": "b"}, service_tier="auto", extra_body={"foo": [1], "seed": None, "stop": None})
    assert answer.choices[0].message.role == "assistant" and answer.usage.completion_tokens <= 2
