// The template engine against jinja2: its golden renderings, the public cases, errors, limits and threads.
#include "text/template/jinja.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/text/template/template_cases_util.h"

namespace vllm {
namespace {

constexpr const char* kCaseVariables =
    R"({"m": "a</think>\n\nb", "L": [{"r": "u"}, {"r": "a"}, {"r": "u"}], "abc": ["a", "b", "c"]})";

void ExpectGoldens(const std::string& file) {
  const auto cases = ReadCases(file);
  ASSERT_GT(cases.size(), 50u);
  for (const RenderCase& one : cases) {
    const auto compiled = JinjaTemplate::Parse(one.source);
    if (!compiled) {
      EXPECT_TRUE(one.fails) << one.name << ": " << compiled.error().message;
      continue;
    }
    const auto text = compiled->Render(one.context, AtGoldenTime());
    if (one.fails) {
      EXPECT_FALSE(text) << one.name << " renders " << *text;
    } else if (text) {
      EXPECT_EQ(*text, one.text) << one.name;
    } else {
      ADD_FAILURE() << one.name << ": " << text.error().message;
    }
  }
}

TEST(Jinja, ExpressionsRenderAsJinja2Does) {
  ExpectGoldens("expressions0.json");
  ExpectGoldens("expressions1.json");
}
TEST(Jinja, StatementsAndWhitespaceRenderAsJinja2Does) { ExpectGoldens("statements.json"); }
TEST(Jinja, ChatTemplatesRenderAsJinja2Does) {
  ExpectGoldens("chats0.json");
  ExpectGoldens("chats1.json");
}
TEST(Jinja, RandomTemplatesRenderAsJinja2Does) { ExpectGoldens("random.json"); }

TEST(Jinja, AdjacentLiteralsJoin) { EXPECT_EQ(RenderOrError(R"({{ "one " "two " ~ "three" }})"), "one two three"); }
TEST(Jinja, StringMethodsRepetitionAndDottedIndexesWork) {
  EXPECT_EQ(
      RenderOrError(R"({{ (m.split("</think>")|last).lstrip("\n") }}|{{ "ab" * 3 }}|{{ [1,2,3].0 }})", kCaseVariables),
      "b|ababab|1");
}
TEST(Jinja, MacrosTakeDefaultsAndKeywords) {
  EXPECT_EQ(RenderOrError(R"({% macro f(a, b="z") %}[{{ a }}{{ b }}]{% endmacro %}{{ f("q") }}{{ f("q", b="w") }})"),
            "[qz][qw]");
}
TEST(Jinja, FilteredLoopsCountWhatPasses) {
  EXPECT_EQ(
      RenderOrError(
          R"({% for x in L if x.r == "u" %}{{ loop.index }}/{{ loop.length }}{{ "" if loop.last else "," }}{% endfor %})",
          kCaseVariables),
      "1/2,2/2");
}
TEST(Jinja, LoopsHaveScopesAndNamespacesLeaveThem) {
  EXPECT_EQ(RenderOrError(
                "{% set x = 1 %}{% for i in [1,2] %}{% set x = i+10 %}{% endfor %}{{ x }}|{% set n = namespace(x=1) %}"
                "{% for i in [1,2] %}{% set n.x = i+10 %}{% endfor %}{{ n.x }}"),
            "1|12");
}
TEST(Jinja, UndefinedIsEmptyInLoopsAndFilters) {
  EXPECT_EQ(
      RenderOrError(
          R"({% for x in nope %}x{% else %}none{% endfor %}|{{ nope|length }}|{{ nope is defined }}|{{ nope|default("d") }})"),
      "none|0|False|d");
}
TEST(Jinja, ArithmeticIsPythons) {
  EXPECT_EQ(RenderOrError(
                "{{ 7 // 2 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 1.0 }} {{ 10 ** 2 }} {{ true }} {{ none }}"),
            "3 3.5 -4 2 1.0 100 True None");
}
TEST(Jinja, SlicesAndNegativeIndexesWork) {
  EXPECT_EQ(RenderOrError(R"({{ abc[1:]|length }}{{ abc[::-1][0] }}{{ "abc"[-1] }})", kCaseVariables), "2cc");
}
TEST(Jinja, DictsPrintAsPythonPrintsThem) {
  EXPECT_EQ(RenderOrError(R"({{ {"b":1,"a":2} }} {{ {"b":1}.items()|list }})"), "{'b': 1, 'a': 2} [('b', 1)]");
}

TEST(Jinja, TojsonKeepsCharactersAndOrder) {
  const std::string context = R"({"v": {"d": "café <b>&'", "n": 1.0, "z": null, "a": true}})";
  const std::string plain = R"({"d": "café <b>&'", "n": 1.0, "z": null, "a": true})";
  EXPECT_EQ(RenderOrError("{{ v|tojson }}", context), plain);
  EXPECT_EQ(RenderOrError("{{ v|tojson(ensure_ascii=False) }}", context), plain);
  EXPECT_EQ(RenderOrError("{{ v|tojson(ensure_ascii=True) }}", context),
            R"({"d": "caf\u00e9 <b>&'", "n": 1.0, "z": null, "a": true})");
}
TEST(Jinja, TojsonIndents) {
  EXPECT_EQ(RenderOrError("{{ v|tojson(indent=2) }}", R"({"v": {"b": [1, 2], "a": {}}})"),
            "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}");
}
TEST(Jinja, TojsonLeavesToolKeysInTheOrderSent) {
  const std::string tool =
      R"({"name": "f", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}, "required": ["z"]}})";
  EXPECT_EQ(RenderOrError("{{ tool|tojson }}", R"({"tool": )" + tool + "}"), tool);
}

constexpr std::string_view kRoleOrder =
    R"({% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("order: " ~ m.role) }}{% endif %})"
    R"([{{ m.role }}]{{ m.content }}{% endfor %}{{ strftime_now("%Y") }})";

TEST(Jinja, RaiseExceptionGivesItsMessageVerbatim) {
  const auto compiled = JinjaTemplate::Parse(kRoleOrder);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto context =
      base::ParseJson(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})", 9)
          .ValueOrThrow();
  const auto text = compiled->Render(jinja::FromJson(context));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message, "order: user");
}
TEST(Jinja, TemplateRendersAfterItRaised) {
  EXPECT_EQ(RenderOrError(kRoleOrder, R"({"messages": [{"role": "user", "content": "a"}]})", AtGoldenTime()),
            "[user]a2024");
}

TEST(Jinja, ErrorsNameTheLine) {
  EXPECT_EQ(RenderOrError("a\nb\n{{ x.y }}"), "error: chat template line 3: 'x' is undefined");
  EXPECT_EQ(RenderOrError("a\n{% if x %}"),
            "error: chat template line 2: Unexpected end of template. Jinja was looking for the following "
            "tags: 'elif' or 'else' or 'endif'");
}
TEST(Jinja, TemplatesOfSeveralFilesAreRefusedByName) {
  for (const std::string tag :
       {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block b", "autoescape true"}) {
    const auto compiled = JinjaTemplate::Parse("\n{% " + tag + " %}");
    ASSERT_FALSE(compiled) << tag;
    EXPECT_EQ(compiled.error().code, base::ErrorCode::kUnsupported);
    EXPECT_NE(compiled.error().message.find("line 2: {% " + tag.substr(0, tag.find(' '))), std::string::npos)
        << compiled.error().message;
  }
}
TEST(Jinja, UnservedFiltersAreRefusedAtLoad) {
  for (const std::string name : {"pprint", "random", "striptags", "urlize", "wordwrap"}) {
    const auto compiled = JinjaTemplate::Parse("{{ x|" + name + " }}");
    ASSERT_FALSE(compiled) << name;
    EXPECT_EQ(compiled.error().code, base::ErrorCode::kUnsupported);
  }
}
TEST(Jinja, SandboxHidesMethodsThatChangeTheirObject) {
  EXPECT_EQ(RenderOrError("{{ [1].append(2) }}"),
            "error: chat template line 1: access to attribute 'append' of 'list' object is unsafe.");
}
TEST(Jinja, IntegersBeyond128BitsAreErrors) {
  EXPECT_EQ(RenderOrError("{{ 2 ** 127 }}"),
            "error: chat template line 1: integer overflow: the result does not fit in 128 bits");
  EXPECT_EQ(RenderOrError("{{ 2 ** 126 }}"), "85070591730234615865843651857942052864");
}
TEST(Jinja, WholeUnsigned64BitRangeIsExact) {
  EXPECT_EQ(RenderOrError("{{ x }}", R"({"x": 18446744073709551615})"), "18446744073709551615");
}

TEST(Jinja, HostileTemplatesEndWithAnError) {
  const std::pair<std::string, std::string> cases[] = {
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "too many steps"},
      {"{{ 'a' * 1000000000000 }}", "string of"},
      {"{{ [0] * 1000000000000 }}", "too much data"},
      {"{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}", "string of"},
      {"{% set n = namespace(s='a' * 30000000) %}{% for i in range(1000) %}{% set n.s = n.s.upper() %}{% endfor %}",
       "too m"},
      {"{% for i in range(100000) %}{{ 'a' * 10000 }}{% endfor %}", "string of"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"},
      {"{% macro f(x) %}{{ f([x]) }}{% endmacro %}{{ f(1) }}", "deep"},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "recursion"},
      {"{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = [n.l] %}{% endfor %}", "nested"},
      {"{% set n = namespace(l=[]) %}{% for i in range(100) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}", "t"},
      {"{% set n = namespace(a=[], b=[]) %}{% for i in range(100) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] "
       "%}"
       "{% endfor %}{{ n.a == n.b }}",
       "too many steps"},
      {"{% set n = namespace(l=[]) %}{% for i in range(100) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l|tojson }}",
       "t"},
      {"{% set n = namespace(l=()) %}{% for i in range(100) %}{% set n.l = (n.l, n.l) %}{% endfor %}{{ {n.l: 1} }}",
       "too many steps"},
      {"{% set n = namespace() %}{% set n.n = n %}{{ n }}", "nested too deeply"},
      {"{{ '%*d' % (2000000000, 1) }}", "string of"},
      {"{{ '{:2000000000}'.format(1) }}", "string of"},
      {"{{ 'a'.center(2000000000) }}", "string of"},
      {"{{ 'aaaaaaaaaa'.replace('a', 'b' * 60000000) }}", "string of"},
      {"{{ [1]|batch(99999999999, 0)|list }}", "too much data"},
      {"{{ [1]|slice(99999999999)|list }}", "too m"},
      {"{{ [[1]]|tojson(indent=2000000000) }}", "string of"},
      {"{{ strftime_now('%9999999d') }}", ""},
      {"{% set n = namespace(g=[1]) %}{% for i in range(100000) %}{% set n.g = n.g|select %}{% endfor %}{{ n.g|list }}",
       "recursion"},
      {"{% set n = namespace(r=range(0, 9, 2 ** 62)) %}{% for i in range(9) %}{% set n.r = n.r[::2 ** 60] %}{% endfor "
       "%}",
       "overflow"},
      {"{% set n = namespace(t=()) %}{% for i in range(100) %}{% set n.t = (n.t, n.t) %}{% endfor %}{{ {}[n.t] }}",
       "too many steps"},
      {"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ s.rfind('b' ~ s) }}{% endfor %}", "too m"},
  };
  for (const auto& [source, reason] : cases) {
    const std::string text = RenderOrError(source);
    EXPECT_TRUE(text.starts_with("error: ")) << source << " renders " << text.substr(0, 100);
    EXPECT_NE(text.find(reason), std::string::npos) << source << ": " << text;
  }
}

TEST(Jinja, SearchesTakeLinearTime) {
  const std::string half = "{% set s = 'a' * 1000000 %}{% set p = 'a' * 500000 ~ 'b' %}";
  EXPECT_EQ(
      RenderOrError(half +
                    "{{ s.find(p) }}{{ p in s }}{{ s.count(p) }}{{ s.split(p)|length }}{{ s|replace(p, '')|length }}"),
      "-1False011000000");
}

TEST(Jinja, ScopesThatWouldTakeMinutesToResolveAreRefused) {
  std::string source;
  for (int i = 0; i < 4000; ++i) source += base::StrCat("{{ a", i, " }}");
  source += "{% if 1 %}";
  for (int i = 0; i < 4000; ++i) source += "{% elif 1 %}";
  const auto compiled = JinjaTemplate::Parse(source + "{% endif %}");
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().message.find("too many conditions"), std::string::npos) << compiled.error().message;
}

TEST(Jinja, DeepTemplatesAreRefusedAtLoad) {
  const auto repeat = [](const std::string& part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  for (const std::string& source : {"{{ " + repeat("(", 10000),
                                    "{{ " + repeat("[", 10000),
                                    "{{ " + repeat("{1:", 10000),
                                    "{{ " + repeat("not ", 10000) + "1 }}",
                                    "{{ " + repeat("-", 10000) + "1 }}",
                                    "{{ 1" + repeat(" + 1", 10000) + " }}",
                                    "{{ x" + repeat(".x", 10000) + " }}",
                                    "{{ x" + repeat("|e", 10000) + " }}",
                                    "{{ x" + repeat("()", 10000) + " }}",
                                    "{{ x" + repeat(" if 1 else x", 10000) + " }}",
                                    "{{ x" + repeat("[x", 10000) + " }}",
                                    "{{ x" + repeat("(x", 10000) + " }}",
                                    repeat("{% if 1 %}", 10000),
                                    repeat("{% for a in b %}", 10000),
                                    repeat("{% macro a() %}", 10000),
                                    repeat("{% set x %}", 10000),
                                    "{{ x" + repeat(" is odd", 10000) + " }}",
                                    "{{ 1" + repeat(" and 1", 10000) + " }}",
                                    repeat("{% if 1 %}{% elif 1 %}", 10000),
                                    "{% set " + repeat("(", 10000)}) {
    EXPECT_FALSE(JinjaTemplate::Parse(source)) << source.substr(0, 40);
  }
  EXPECT_TRUE(JinjaTemplate::Parse("{{ 'a'" + repeat(" ~ 'b'", 10000) + " }}"));
  EXPECT_TRUE(JinjaTemplate::Parse("{% if 1 %}" + repeat("{% elif 2 %}x", 10000) + "{% endif %}"));
  EXPECT_FALSE(JinjaTemplate::Parse(std::string((1 << 20) + 1, 'a')));
}

TEST(Jinja, LimitsOfOneRenderingCanBeLowered) {
  RenderOptions options;
  options.string_bytes_max = 10;
  EXPECT_EQ(RenderOrError("0123456789", "{}", options), "0123456789");
  EXPECT_EQ(RenderOrError("01234567890", "{}", options),
            "error: chat template line 1: the template makes a string of 11 bytes; the limit is 10");
}

TEST(Jinja, OneTemplateServesManyThreads) {
  const auto compiled = JinjaTemplate::Parse(ChatSource("qwen3"));
  ASSERT_TRUE(compiled) << compiled.error().message;
  const auto cases = ReadCases("chats1.json");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  const RenderOptions options = AtGoldenTime();
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        for (const RenderCase& one : cases) {
          if (!one.name.starts_with("qwen3 ") || one.fails) continue;
          const auto text = compiled->Render(one.context, options);
          wrong[t] += !text || *text != one.text;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace vllm
