# Writes tests/data/template/*.json: what jinja2, set up by transformers, renders for language cases, chat templates and random templates.
"""Each file is {"now": local time, "contexts": {name: variables}, "cases": [{"t": template, "c": context name, "ok": text} or
{"t", "c", "error": exception type}]}; detection.json is [{"t", "format"}] with vLLM's content format of each chat template.
The chat templates themselves are the *.jinja files of tests/data/template/chat/."""
import datetime
import json
import pathlib
import random
import sys

import transformers.utils.chat_template_utils as hf

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent.parent / "tests" / "data" / "template"
NOW = datetime.datetime(2024, 7, 26, 15, 4, 5, 123456)


def render(template, context):
    compiled = hf._compile_jinja_template(template)
    compiled.environment.globals["strftime_now"] = NOW.strftime
    compiled.globals["strftime_now"] = NOW.strftime
    return compiled.render(**context)


def case(template, name, contexts):
    row = {"t": template, "c": name}
    try:
        row["ok"] = render(template, contexts[name])
        row["ok"].encode()
    except RecursionError:
        return None
    except UnicodeEncodeError:
        return None
    except Exception as error:
        row.pop("ok", None)
        row["error"] = type(error).__name__
    # addresses of Python objects are no result
    if "ok" in row and (" at 0x" in row["ok"] or "0x7f" in row["ok"]):
        return None
    return row


def write(name, contexts, cases):
    rows = [row for row in cases if row is not None]
    body = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    text = '{"now":%s,\n"contexts":%s,\n"cases":[\n%s\n]}\n' % (
        json.dumps([*NOW.timetuple()[:6], NOW.microsecond]), json.dumps(contexts, ensure_ascii=False, separators=(",", ":")), body)
    (DATA / name).write_text(text, encoding="utf-8")
    errors = sum("error" in row for row in rows)
    print(f"{name}: {len(rows)} cases, {errors} of them errors, {len(text.encode())} bytes")


def main():
    sys.path.insert(0, str(HERE))
    import _template_cases as data

    DATA.mkdir(parents=True, exist_ok=True)
    for name, contexts, templates in data.language():
        write(f"{name}.json", contexts, [case(t, c, contexts) for t, c in templates])
    chats = {p.stem: p.read_text(encoding="utf-8") for p in sorted((DATA / "chat").glob("*.jinja"))}
    write_chats(chats, data.conversations())
    write_detection(chats, data.detection_templates())
    generator = data.RandomTemplates(random.Random(20240726))
    rows, wanted = [], 420
    while len(rows) < wanted:
        template = generator.template()
        row = case(template, "random", {"random": generator.context})
        # mostly renderings; a few errors show that ours errs too
        if row is None or ("error" in row and sum("error" in r for r in rows) > wanted // 5) or len(row.get("ok", "")) > 300:
            continue
        rows.append(row)
    write("random.json", {"random": generator.context}, rows)


def write_chats(chats, conversations):
    rows = []
    for name, source in chats.items():
        for conversation, context in conversations.items():
            row = case(source, conversation, conversations)
            row["t"] = name
            rows.append(row)
    half = len(rows) // 2
    for part, chunk in enumerate((rows[:half], rows[half:])):
        write(f"chats{part}.json", conversations, chunk)


def write_detection(chats, extra):
    from vllm.renderers.hf import _detect_content_format

    rows = [{"t": name, "format": _detect_content_format(source, default="string")} for name, source in chats.items()]
    rows += [{"source": t, "format": _detect_content_format(t, default="string")} for t in extra]
    (DATA / "detection.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print("detection.json:", len(rows), "templates")


if __name__ == "__main__":
    main()
