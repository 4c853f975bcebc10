# The templates and variables of tools/golden/template.py, and the generator of random ones.
import itertools

BASIC = {
    "m": "a</think>\n\nb", "L": ["a", "b", "c"], "users": [{"r": "u"}, {"r": "a"}, {"r": "u"}], "n": 3, "f": 2.5, "s": "Hello World",
    "u": "Grüße, 世界 🦙", "d": {"b": 1, "a": 2}, "empty": [], "none": None, "yes": True, "no": False, "z": 0, "neg": -7,
    "nested": {"x": {"y": [1, 2, {"z": "deep"}]}}, "html": "<b>\"it's\" & more</b>", "big": 12345678901234567890,
    "mixed": [1, "two", 3.0, None, True, [4], {"k": 5}], "nums": [3, 1, 2, 10, -4], "words": ["banana", "Apple", "cherry", "apple"],
    "people": [{"name": "Zoe", "age": 30, "city": "NY"}, {"name": "adam", "age": 25, "city": "ca"}, {"name": "Bob", "age": 30, "city": "CA"}],
    "tool": {"d": "café <b>&'", "n": 1.0, "z": None, "a": True}, "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}],
    "lines": "one\n\n  two\r\nthree\n", "tabs": "a\tbc\td", "csv": "a,b,,c", "items": "attr", "keys": {"items": "own", "get": 1, "pop": 2, "_x": 3},
}

EXPRESSIONS = r"""
"one " "two " ~ "three"
(m.split("</think>")|last).lstrip("\n")
"ab" * 3
3 * "ab"
[1,2,3].0
7 // 2
7 / 2
-7 // 2
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
-7.5 % 3
1.0
10 ** 2
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
true
none
1e5
1e16
1e15
123456789012345680.0
0.0001
0.00001
1e-7
1.5e300 * 1e10
0.1 + 0.2
1/3
100000000000000000000 + 1
big
big * 2
5 - 3 - 1
1 - -1
+5
- -5
not true
not not 1
1 if yes else 2
1 if no
(1 if no) is defined
1 if no else 2 if no else 3
yes and n
no and n
z or "fallback"
"" or none or [] or {} or "last"
1 < 2 < 3
1 < 2 > 3
3 > 2 >= 2 == 2 != 1
1 == 1.0
1 == true
"a" == "a"
[1] == (1,)
[1, 2] == [1, 2]
{"a": 1, "b": 2} == {"b": 2, "a": 1}
(1, "a") < (1, "b")
[1, 2] < [1]
"a" < "B"
"a" in "abc"
"a" not in "abc"
2 in nums
"b" in d
5 in range(3, 10)
5 in range(0, 10, 2)
none in [none]
undefd in [1]
1 in undefd
1 in none
1 in "abc"
L[1:]|length
L[::-1][0]
"abc"[-1]
L[5]
L[5] is defined
L[-3]
L[-4] is defined
L[1:2]
L[:-1]
L[::2]
L[10:]
L[2:0:-1]
s[2:8:2]
s[::-1]
u[1:4]
u[-1]
u[::-1]
u|length
u.upper()
u.lower()
u.title()
nums[true]
d["b"]
d.b
d.nope
d["nope"] is defined
d.nope.x
nested.x.y[2].z
nested["x"]["y"][0]
nested.x.y.1
d.items()|list
d.items()
d.keys()
d.values()
d.keys()|list
d|list
d|length
d|items|list
undefd|items|list
d.get("b")
d.get("q")
d.get("q", 7)
d.update({"c": 3})
L.append("d")
L.pop()
d.pop("a")
keys.items()
keys.items
keys["items"]
keys.get
keys["get"]
keys.pop
keys["pop"]
keys._x
keys["_x"]
d.copy()
d.__class__
s.__class__.__mro__
{"b":1,"a":2}
{"b":1}.items()|list
{1: "a", 1.0: "b", true: "c"}
{"a": {"b": [1, (2,), ()]}}
{(1, 2): 3}
{[1]: 2}
[1, "a'b", 'a"b', "a'\"b", 1.5, none, true, undefd]
("x",)
()
(1, 2)
[undefd]
"tab\tnew\nline"|list
["tab\t", "new\n", "\\", "\x00\x7f\u200b", "é", "🦙"]
"\u00e9\x41\101"
'it\'s'
"a\qb"
"line\
joined"
"\é\"
1_000
0x1F
0b101
0o17
1_0.5
"x" ~ 1 ~ none ~ true ~ 1.5 ~ [1]
"x" + "y"
"x" + 1
1 + "x"
[1] + [2]
[1] + (2,)
(1,) + (2,)
[1] * 2
[0] * -1
"x" - "y"
none + 1
undefd + 1
undefd
undefd.x
undefd["x"]
undefd()
-undefd
undefd == undefd2
undefd == none
undefd is none
undefd|length
undefd|list
undefd ~ "x"
undefd < 1
"%s" % undefd
s.upper()
s.lower()
s.swapcase()
s.title()
s.capitalize()
"hello wORLD".capitalize()
s.split()
s.split("o")
s.split("o", 1)
s.rsplit("o", 1)
s.split(sep="l", maxsplit=1)
csv.split(",")
"  a  b  ".split()
"  a  b  ".split(" ")
"  a b c ".split(none, 1)
"  a b c ".rsplit(none, 1)
"abc".split("")
lines.splitlines()
lines.splitlines(true)
"  x ".strip() ~ "|"
"xxaxx".strip("x")
"xxaxx".lstrip("x")
"xxaxx".rstrip("x")
"abcba".strip("ab")
s.startswith("Hell")
s.startswith(("x", "H"))
s.endswith("World")
s.endswith(("d", "x"))
s.startswith("World", 6)
s.startswith(1)
s.find("o")
s.find("o", 5)
s.rfind("o")
s.find("zz")
s.index("W")
s.index("zz")
u.find("界")
s.count("l")
s.count("")
s.replace("l", "L")
s.replace("l", "L", 1)
s.replace("", "-")
"-".join(L)
", ".join(nums)
"".join("abc")
s.zfill(15)
"-5".zfill(5)
s.center(21, "*")
s.center(20, "*")
s.ljust(15, ".")
s.rjust(15, ".")
tabs.expandtabs(4)
tabs.expandtabs()
s.partition(" ")
s.rpartition("o")
s.partition("zz")
s.removeprefix("Hello ")
s.removesuffix("World")
"abc".isalpha()
"abc1".isalnum()
"123".isdigit()
"12.3".isdigit()
"".isdigit()
"²".isdigit()
"²".isdecimal()
"½".isnumeric()
" \t".isspace()
"ABC".isupper()
"abc".islower()
"Abc Def".istitle()
"abc".isidentifier()
"1abc".isidentifier()
"abc".isascii()
"aé".isascii()
"a\n".isprintable()
"straße".upper()
"ΑΣ".lower()
"İ".lower()
"ǆ".title()
"ﬁ".upper()
"ß".casefold()
"{} {}".format(1, "a")
"{0} {1} {0}".format(1, "a")
"{x} {y.b} {z[a]}".format(x=1, y=d, z=d)
"{!r} {!s}".format("a", "a")
"{:>5}|{:<5}|{:^5}|{:*^7}".format(1, 2, 3, "x")
"{:05d} {:+} {: } {:x} {:#x} {:b} {:o} {:c}".format(42, 42, 42, 255, 255, 5, 8, 65)
"{:,} {:_}".format(1234567, 1234567)
"{:.2f} {:.3} {:e} {:g} {:%}".format(3.14159, 3.14159, 12345.678, 0.00001, 0.25)
"{:.3}".format("abcdef")
"{:10.2f}|{:<10.2f}|{:010.2f}".format(3.14159, 3.14159, -3.14159)
"{:{w}}|".format("a", w=5)
"{{}} {}".format(1)
"{}".format()
"{a}".format()
"{".format(1)
"%s and %d" % ("a", 5)
"%05.2f|%-5s|%5s|%+d|%x|%X|%o|%e|%g|%%" % (3.14159, "a", "b", 5, 255, 255, 8, 12345.678, 0.0001)
"%(a)s-%(b)03d" % {"a": "x", "b": 7}
"%r" % "a"
"%s" % [1, 2]
"%s %s" % "a"
"%d" % "a"
"%s" % ("a", "b")
"%c%c" % (65, "b")
"%.3s|" % "abcdef"
"%*d" % (5, 42)
"%s %s"|format("a", 1)
"%(x)s"|format(x=1)
nums.index(2)
nums.index(99)
nums.count(1)
(1, 2, 1).count(1)
range(5)
range(5)|list
range(2, 10, 3)|list
range(5, 0, -2)|list
range(0)|list
range(10)[2:5]
range(10)[-1]
range(200000)
range(1, 2, 0)
range("a")
range(3)|length
range(3) == range(0, 3)
n.bit_length()
f.is_integer()
(5).real
dict(a=1, b=2)
dict([("a", 1), ("b", 2)])
dict(d, c=3)
dict(1)
namespace(a=1).a
namespace(a=1)
namespace({"a": 1}, b=2).b
namespace(a=1).q is defined
cycler("a", "b").next()
[1, 2, 3]|sum
["a", "b"]|sum
[[1], [2]]|sum(start=[])
people|sum(attribute="age")
nums|sum(start=100)
nums|max
nums|min
words|max
words|min
words|max(case_sensitive=true)
people|max(attribute="age")
empty|max
empty|max is defined
[1, "a"]|max
nums|sort
nums|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
people|sort(attribute="age")|map(attribute="name")|list
people|sort(attribute="age,name")|map(attribute="name")|list
people|sort(attribute="age", reverse=true)|map(attribute="name")|list
[1, "a"]|sort
[[2, 1], [1, 2]]|sort
"hello"|sort
d|sort
d|dictsort
d|dictsort(by="value")
d|dictsort(reverse=true)
{"B": 1, "a": 2}|dictsort
{"B": 1, "a": 2}|dictsort(true)
L|dictsort
words|unique|list
words|unique(case_sensitive=true)|list
people|unique(attribute="age")|map(attribute="name")|list
people|groupby("age")
people|groupby("city")|map(attribute="grouper")|list
people|groupby("city", case_sensitive=true)|map(attribute="grouper")|list
people|groupby("q", default="none")|list
people|groupby("city")|first|last|length
(people|groupby("age")|first).grouper
(people|groupby("age")|first).list|length
L|first
L|last
empty|first
empty|last
d|first
d|last
"abc"|first
"abc"|last
u|last
range(3)|last
undefd|first
undefd|last
L|join
L|join(", ")
nums|join("-")
people|join(", ", attribute="name")
undefd|join(",")
none|join
mixed|join("|")
L|reverse|list
s|reverse
u|reverse
L|reverse|join
d|reverse|list
L|batch(2)|list
L|batch(2, "x")|list
range(7)|batch(3)|list
range(7)|slice(3)|list
range(7)|slice(3, "x")|list
L|slice(5)|list
nums|map("string")|list
words|map("upper")|join(",")
people|map(attribute="name")|list
people|map(attribute="q", default="?")|list
people|map(attribute="q")|list
nums|map("nofilter")|list
nums|map
people|map(attribute="name")|map("lower")|list
words|map("replace", "a", "4")|list
nums|select("odd")|list
nums|select("divisibleby", 2)|list
nums|select(">", 1)|list
mixed|select|list
mixed|reject|list
mixed|select("string")|list
mixed|select("mapping")|list
nums|reject("odd")|list
nums|select("notest")|list
people|selectattr("age", "equalto", 30)|map(attribute="name")|list
people|selectattr("age", "eq", 25)|list
people|selectattr("name")|list|length
people|selectattr("q")|list
people|selectattr("q", "defined")|list
people|rejectattr("age", "gt", 26)|map(attribute="name")|list
people|selectattr("city", "in", ["NY"])|list|length
users|selectattr("r", "==", "u")|list|length
nested|attr("x")
d|attr("items")
d|attr("b")
s|attr("upper")
nums|list|length
"abc"|list
d.items()|length
n|string ~ f|string
"42"|int
"42.9"|int
"x"|int
"x"|int(7)
"0x1F"|int(base=16)
"1F"|int(0, 16)
"0b11"|int(0, 2)
none|int
none|int(default=5)
42.9|int
true|int
[]|int
"1_000"|int
" 12 "|int
"-12"|int
"inf"|int(9)
"nan"|int(9)
"3.5"|float
"x"|float
"x"|float(1.5)
3|float
"1e3"|float
"inf"|float
none|float
-5|abs
-5.5|abs
5.5|round
4.5|round
2.675|round(2)
42.55|round(1, "floor")
42.55|round(1, "ceil")
42|round
1234.5|round(-2)
1250|round(-2)
-2.5|round
2.5|round|int
5|round("x")
none|default("x")
none|default("x", true)
""|default("x", true)
undefd|default("x")
undefd|d("x")
undefd|default
nested.q|default("x")
0|default(5, boolean=true)
"  a "|trim ~ "|"
"xax"|trim("x")
5|trim
"hello world"|title
"it's a-b (c) {d} [e] <f>"|title
"hELLO"|capitalize
5|upper
none|upper
true|lower
"hello"|upper
"a b  c"|wordcount
"a-b_c d"|wordcount
"foo bar baz qux"|truncate(9)
"foo bar baz qux"|truncate(9, true)
"foo bar baz qux"|truncate(11)
"foo bar baz qux"|truncate(11, false, "...", 0)
"foo bar baz qux"|truncate(2)
lines|indent
lines|indent(2, true)
lines|indent(2, blank=true)
lines|indent("> ")
lines|indent(first=true)
5|indent
"x"|center(9) ~ "|"
"a&b"|e
html|escape
html|e|e
html|forceescape
html|safe
("<"|e) ~ "<"
("<"|e) + "<"
"<" + ("<"|e)
("<%s>"|safe) % "<"
("<"|e) is escaped
["<"|e]
("a,b"|safe).split(",")
("-"|safe).join(["<", ">"])
html|replace("<", "[")
"aaaa"|replace("a", "b", 2)
123|replace("2", "x")
"a b&c/d"|urlencode
{"a b": "c&d", "e": 1}|urlencode
u|urlencode
{"class": "x", "id": none, "a": 1}|xmlattr
{"a b": 1}|xmlattr
1000|filesizeformat
1|filesizeformat
12345678|filesizeformat
12345678|filesizeformat(true)
tool|tojson
tool|tojson(ensure_ascii=False)
tool|tojson(ensure_ascii=True)
{"b":[1,2],"a":{}}|tojson(indent=2)
{"b":[1,2],"a":{}}|tojson(indent=2, sort_keys=true)
{"b":[1,2],"a":{}}|tojson(indent=0)
{"b":[1,2],"a":{}}|tojson(indent="--")
{"b":[1,2],"a":{}}|tojson(separators=(",", ":"))
{"b":[1,2],"a":{}}|tojson(false, 1, (",", ":"), true)
[]|tojson(indent=2)
[[], {}]|tojson(indent=2)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
u|tojson
u|tojson(true)
"\x00\x1f\x7f\\\"\n\r\t\b\f/"|tojson
"\x7f"|tojson(ensure_ascii=true)
1.0|tojson
1e100|tojson
(1, 2)|tojson
undefd|tojson
range(2)|tojson
d.items()|tojson
nums|map("string")|tojson
{(1,): 2}|tojson
none|tojson
true|tojson
big|tojson
{"b": 1, 2: 3}|tojson(sort_keys=true)
5 is odd
4 is even
9 is divisibleby 3
9 is divisibleby(2)
undefd is defined
undefd is undefined
n is not defined
n is defined and n is number
none is none
true is boolean
1 is boolean
true is true
1 is true
false is false
1 is integer
true is integer
1.0 is float
1 is number
true is number
"a" is string
1 is string
{} is mapping
[] is mapping
[] is sequence
"a" is sequence
{} is sequence
1 is sequence
undefd is sequence
d.items() is sequence
[] is iterable
1 is iterable
undefd is iterable
"abc" is lower
"ABC" is upper
1 is lower
range is callable
s.upper is callable
s is callable
undefd is callable
1 is eq 1
1 is == 1
1 is ne 2
1 is lt 2
2 is gt(1)
1 is le 1
1 is ge 2
1 is sameas 1
none is sameas none
[] is sameas []
1 is in [1, 2]
"a" is in "abc"
"upper" is filter
"nofilter" is filter
"odd" is test
"notest" is test
not 1 is odd
1 is odd and 2 is even
1 is not odd or 2 is even
raise_exception("own " ~ "message")
strftime_now("%Y-%m-%d %H:%M:%S")
strftime_now("%d %b %Y, %A %B %j %p %I %f %y")
strftime_now("%-d/%-m %% %z|%Z|")
strftime_now("")
5|truncate
[1, 2]|truncate(5)
undefd|truncate
range(10)|truncate(3)
("ab"|safe)|list
("ab"|safe)|sort
[1, 2, 3]|batch(2.0)|list
[1, 2]|batch("nan"|float)|list
[1, 2]|batch("x")|list
{"b": 1, "a": 2, "c": 0}|tojson(sort_keys=true)
{2: 1, 1: 2}|tojson(sort_keys=true)
{none: 1}|tojson(sort_keys=true)
lipsum is defined
[1, 2, 3][none]
[1, 2, 3]["x"] is defined
[1, 2, 3][1.0] is defined
"abc"["upper"]()
none.x is defined
none.x.y
5.5.real
(1, 2, 3)[1:]
d[1:]
L["a":]
L[::0]
"a" if 1 else "b" ~ "c"
("a" if 1 else "b") ~ "c"
1 + 2 ~ 3 * 4
1 ~ 2 + 3
2 * 3 ~ 4
-1|abs
-1 ** 2
"a"|upper ~ "b"|upper
not none is none
[x, y] is defined
{"a": 1}.a
{"a": 1}["a"]
[1, 2][0] + [3, 4][1]
"a,b".split(",")[1]
"x".join(["a", "b"]).upper()
(n + 1) * 2
n * f
f // 1
f % 1
7 % 0
7 / 0
7 // 0
7.0 / 0
7.0 % 0
7.0 // 0
0 ** -1
-0.0
0.0 == -0.0
1e400
-1e400
1e400 - 1e400
1e400|int
"%d" % 1e400
range(1, 4)|map("string")|join(",")|upper
"a" "b" ~ "c" "d"
{"a": "b" "c"}
dict(a=1)|tojson ~ [1]|tojson
{}|length + []|length
dict(**d)
dict(*[[["a", 1]]])
cycler()
joiner("; ")()
nums|sort|first
nums|sort|last
nums[1:3]|sum
"Hello"|replace("l", "")|length
users[0].r ~ users[-1]["r"]
m.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
x is defined and x.y
(undefd or d).b
(undefd or {}).get("a", "none")
tool.items()|map("first")|list
tool.items()|map("last")|list
d.items()|selectattr("1", "gt", 1)|list
d.items()|map(attribute=0)|list
d.items()|map(attribute="0")|join
people[0].items()|list
"\n".join(lines.splitlines())
1.0 * 3
3.0
1e3
10.50
100.0 / 3
123456789.123456789
5e-324
1.7976931348623157e308
""|join is string
"abc" is string and "abc"|length == 3
"a".nope
"a".nope()
1(2)
none()
"a"(1)
[1]|nofilter
1 is notest
(1 if true else 2|nofilter)
"" "x" if "" else "y"
[1,]
(1,)
{"a": 1,}
{,}
[,]
a b
1 +
(1
[1
{"a"}
{"a":}
'a
"a" 'b
1 2
a.
a..b
a[
a[]
a[1:2, 3]
f(1, a=2, 3)
f(*a, *b)
f(a=1, a=2)
x|
x is
is x
x is not
if
$
x $ y
""".strip("\n").split("\n")

STATEMENTS = [
    '{% macro f(a, b="z") %}[{{ a }}{{ b }}]{% endmacro %}{{ f("q") }}{{ f("q", b="w") }}',
    '{% for x in users if x.r == "u" %}{{ loop.index }}/{{ loop.length }}{{ "" if loop.last else "," }}{% endfor %}',
    '{% set x = 1 %}{% for i in [1,2] %}{% set x = i+10 %}{% endfor %}{{ x }}|{% set n = namespace(x=1) %}{% for i in [1,2] %}{% set n.x = i+10 %}{% endfor %}{{ n.x }}',
    '{% for x in nope %}x{% else %}none{% endfor %}|{{ nope|length }}|{{ nope is defined }}|{{ nope|default("d") }}',
    '{% if n > 2 %}big{% elif n > 1 %}mid{% else %}small{% endif %}',
    '{% if no %}a{% elif yes %}b{% endif %}c',
    '{% if no %}a{% endif %}',
    "{% for x in L %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in L %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in L %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}",
    "{% for x in nums|sort %}{{ loop.cycle('odd', 'even') }}{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in [1,1,2] %}{% if loop.changed(x, 1) %}{{ x }}{% endif %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for a, b in [[1,2],[3,4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for (a, b), c in [[[1,2],3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [[1,2,3]] %}{% endfor %}",
    "{% for a, b in [[1]] %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}",
    "{% for x in 5 %}{% endfor %}",
    "{% for x in none %}{% endfor %}",
    "{% for x in d %}{{ x }}{% endfor %}",
    "{% for c in u %}{{ c }}.{% endfor %}",
    "{% for x in range(10) %}{% if x == 3 %}{% continue %}{% endif %}{% if x > 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}E{% endfor %}",
    "{% for x in [1,2] %}{% continue %}{% else %}E{% endfor %}",
    "{% for x in [1,2] %}{{ x }}{% else %}E{% endfor %}",
    "{% for x in L %}{% for y in nums[:2] %}{{ loop.index }}{{ x }}{{ y }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in L %}{% set outer = loop %}{% for y in [1,2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for n in tree recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
    "{% for n in tree recursive %}{{ loop.depth }}:{{ n.v }}{{ loop(n.c) }}{% else %}-{% endfor %}",
    "{% for n in tree %}{{ loop(n.c) }}{% endfor %}",
    "{% for x in nums if x > 1 %}{{ x }}{{ loop.last }}{% else %}none{% endfor %}",
    "{% for x in nums if x > 100 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums if x > 1 %}{{ loop.revindex }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in L if loop is defined %}{{ x }}{% endfor %}",
    "{% for x in L|map('upper') %}{{ x }}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for x in L|map('upper') %}{{ x }}{{ loop.nextitem }}{{ loop.length }}{% endfor %}",
    "{% for x in L %}{{ loop }}{% endfor %}",
    "{% for x in L %}{{ loop.nope is defined }}{{ loop|length }}{% endfor %}",
    "{% set g = L|map('upper') %}{{ g|list }}{{ g|list }}{{ g is iterable }}{{ g is sequence }}{{ g|length }}",
    "{% set g = nums|select('odd') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}|{{ 'T' if g }}",
    "{% set unused = nums|map('nofilter') %}fine",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{{ a }}{{ b }}{{ c }}",
    "{% set a, b = [1] %}",
    "{% set (a, (b, c)) = (1, (2, 3)) %}{{ a + b + c }}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% set x %}block {{ n }}{% endset %}{{ x|upper }}",
    "{% set x | upper %}block{% endset %}{{ x }}",
    "{% set x | replace('b', 'c') | upper %}block{% endset %}{{ x }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b %}blk{% endset %}{{ ns.a }}{{ ns.b }}",
    "{% set ns = namespace(a=1) %}{% set ns.a, x = 2, 3 %}{{ ns.a }}{{ x }}",
    "{% set d.x = 1 %}",
    "{% set undefd.x = 1 %}",
    "{% set ns = namespace(items=5) %}{{ ns.items }}{{ ns['items'] }}{{ ns.nope }}{{ ns }}",
    "{% set ns = namespace(l=[]) %}{% for x in L %}{% set ns.l = ns.l + [x] %}{% endfor %}{{ ns.l }}",
    "{% set ns = namespace(n=0) %}{% for x in nums %}{% if x > 0 %}{% set ns.n = ns.n + x %}{% endif %}{% endfor %}{{ ns.n }}",
    "{% if yes %}{% set y = 1 %}{% endif %}{{ y }}",
    "{% if no %}{% set y = 1 %}{% endif %}{{ y }}|{{ y is defined }}",
    "{% if no %}{% set n = 99 %}{% endif %}{{ n }}",
    "{% if yes %}{% set n = 99 %}{% endif %}{{ n }}",
    "{% for i in [1] %}{% if yes %}{% set n = 99 %}{% endif %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in [1,2,3] %}{% if i == 2 %}{% set q = i %}{% endif %}{{ q }};{% endfor %}{{ q }}",
    "{% for i in [1,2] %}{{ q is defined }}{% set q = i %}{{ q }};{% endfor %}",
    "{{ q is defined }}{% set q = 1 %}{{ q }}",
    "{% macro f() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ f() }}{% set q = 2 %}{{ f() }}",
    "{% macro f() %}{{ n }}{% set n = 5 %}{{ n }}{% endmacro %}{{ f() }}{{ n }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}|{{ f(1, 2) }}",
    "{% macro f(a, b=2, c=b*2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, c=0) }}",
    "{% macro f(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ f() }}{{ f(1) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
    "{% macro f(a) %}{{ a }}{{ varargs|length }}{{ kwargs.items()|list }}{% endmacro %}{{ f(1, 2, x=3) }}",
    "{% macro f(a, b) %}{{ caller() }}{{ a }}{% endmacro %}{% call f(1) %}body{{ n }}{% endcall %}",
    "{% macro f(items) %}{% for i in items %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) f(L) %}<{{ x }}{{ i }}>{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}",
    "{% macro f() %}x{% endmacro %}{% call f() %}{% endcall %}",
    "{% macro f(caller) %}{{ caller() }}{% endmacro %}",
    "{% macro f(caller=none) %}{{ caller() }}{% endmacro %}{% call f() %}b{% endcall %}",
    "{% macro f(a, a) %}{% endmacro %}",
    "{% macro f(a=1, b) %}{% endmacro %}",
    "{% macro f(x) %}{{ x }}{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.caller }}{{ f }}",
    "{% macro f(x) -%} {{ x }} {%- endmacro %}{{ f(1) }}{{ f(2)|length }}",
    "{% macro outer() %}{% macro inner() %}{{ n }}!{% endmacro %}{{ inner() }}{{ inner() }}{% endmacro %}{{ outer() }}",
    "{% for i in [1,2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% for i in [1,2] %}{% macro f() %}{{ loop.index }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro f() %}{% for x in varargs %}{{ x }}{% endfor %}{% endmacro %}{{ f(*L) }}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(**{'a': 1, 'b': 2}) }}{{ f(*[1], **{'b': 3}) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(**5) }}",
    "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ f() }}",
    "{% if yes %}{% macro f() %}F{% endmacro %}{% endif %}{{ f() }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}aaa{% endfilter %}",
    "{% filter nofilter %}x{% endfilter %}",
    "{% filter upper %}{% set q = 1 %}{{ q }}{% endfilter %}{{ q }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    "{% print 1, 2, n %}",
    "{% generation %}gen {{ n }}{% endgeneration %}",
    "{% for i in L %}{% generation %}{{ loop.index }}{{ i }}{% set q = i %}{% endgeneration %}{{ q }}{% endfor %}",
    "{% for i in L %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% generation %}",
    "{% for i in [1,2] %}{% set x %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endset %}{{ x }}{% endfor %}",
    "{% break %}",
    "{% if x %}",
    "{% endif %}",
    "{% for x in L %}{% endif %}",
    "{% for %}{% endfor %}",
    "{% for x L %}{% endfor %}",
    "{% foo %}",
    "{% %}",
    "{% if %}{% endif %}",
    "{% set %}",
    "{% set 5 = 1 %}",
    "{% set a.b.c = 1 %}",
    "{% set true = 1 %}",
    "{% for loop in L %}{{ loop }}{% endfor %}",
    "{% for x in L %}{% set loop = 1 %}{% endfor %}",
    "{% set loop = 5 %}{{ loop }}",
    "{{ loop is defined }}",
    "{{",
    "{% if yes",
    "{# unclosed",
    "{{ }}",
    "{{ n",
    "{{ n }",
    "{{ n %}",
    "{{ (n }}",
    "{{ n) }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a'] }}",
    "{{'}}'}}",
    "{{ '{{' }}{{ \"%}\" }}",
    "a{# comment #}b",
    "a {#- comment -#} b",
    "a\n{# comment #}\nb",
    "a\n  {# comment #}\nb",
    "a\n  {#+ comment #}\nb",
    "a\n{# {{ x }} {% if %} #}b",
    "{% raw %}{{ x }}{% if %}{% endraw %}",
    "a\n  {% raw %}  {{ x }}  {% endraw %}\nb",
    "a\n {%- raw -%}  {{ x }}  {%- endraw -%} \nb",
    "{% raw %}{% endraw",
    "{% raw %}\n  x\n  {% endraw %}\ny",
    "{%raw%}{{x}}{%endraw%}",
    "a\n{% if yes %}\n  b\n{% endif %}\nc",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc",
    "a\n  {%+ if yes %}\n  b\n  {% endif %}\nc",
    "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\nc",
    "a  {% if yes %}  b  {% endif %}  c",
    "a  {%- if yes -%}  b  {%- endif -%}  c",
    "{% if yes +%}\n b{% endif %}",
    "  {{ n }}  \n  {{ n }}\n",
    "  {{- n -}}  \n  {{- n }}\n",
    "{{ n }}\n\n",
    "{{ n }}\r\nx\r\n",
    "\n\n{{ n }}",
    "  {% set x = 1 %}\n{{ x }}",
    "  {% set x = 1 %}  \n{{ x }}",
    "\t{% if yes %}\n\tx\n\t{% endif %}\n",
    "x {% if yes %}\ny{% endif %}",
    "{% if yes %}{% endif %}\n\nx",
    "{% for x in L %}\n{{ x }}\n{% endfor %}\n",
    "{%- for x in L %}\n{{ x }}\n{%- endfor %}\n",
    "{% for x in L -%}\n  {{ x }}\n{%- endfor -%}\n  end",
    "{{ n }}{# c #}\n{{ n }}",
    "{{ n }}  {# c #}\n{{ n }}",
    "{#- c -#}\n  {{ n }}",
    "text{%- set x = 1 %}\n{{- x }}",
    "\u3000{%- if yes -%}\u3000x{% endif %}",
    "{{ -n }}{{- n }}{{+ n }}",
    "{{-n-}}",
    "{%-if yes-%}x{%-endif-%}",
    "{ { n } } {n} {% raw %}{{%{% endraw %}",
    "#}{{ n }}%}}}",
    "{% if yes: %}x{% endif %}",
    "{% include 'x' %}",
    "{% extends 'x' %}",
    "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% call n %}{% endcall %}",
    "{% call s.upper() %}{% endcall %}",
    "{% if x|nofilter %}a{% endif %}",
    "{% if no %}{{ x|nofilter }}{% endif %}ok",
    "{% if no %}{% for i in L %}{{ x|nofilter }}{% endfor %}{% endif %}ok",
    "{{ x|nofilter if no }}ok",
    "{{ x is notest }}",
    "{% if no %}{{ x is notest }}{% endif %}ok",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for x in L %}{{ j() }}{{ x }}{% endfor %}",
    "{% set j = joiner() %}{{ j() }}{{ j() }}",
    "{% for p in people|groupby('age') %}{{ p.grouper }}:{% for q in p.list %}{{ q.name }},{% endfor %};{% endfor %}",
    "{% for age, ps in people|groupby('age') %}{{ age }}{{ ps|length }}{% endfor %}",
    "{% for row in range(7)|batch(3, '-') %}{{ row|join }};{% endfor %}",
    "{% for row in range(7)|slice(3) %}{{ row|join }};{% endfor %}",
    "{% set t = {'a': 1} %}{% for k in t %}{{ k }}{{ t[k] }}{% endfor %}",
    "{% set t = 'x' %}{% set t = t ~ 'y' %}{{ t }}",
    "{% set x = x|default('dx') %}{{ x }}",
    "{% set n = n + 1 %}{{ n }}",
    "{% set items = [] %}{{ items }}",
    "{% set a = namespace(v=namespace(w=1)) %}{{ a.v.w }}",
    "{%- set ns = namespace(found=false) -%}{%- for u in users -%}{%- if u.r == 'a' and not ns.found -%}{%- set ns.found = true -%}F{{ loop.index0 }}{%- endif -%}{%- endfor -%}",
    "{{ raise_exception('x') }}",
    "{% for m in users %}{% if (m.r == 'u') != (loop.index0 % 2 == 0) %}{{ raise_exception('order: ' ~ m.r) }}{% endif %}[{{ m.r }}]{% endfor %}{{ strftime_now('%Y') }}",
    "{% for m in users %}{{ m['r'] }}{% if not loop.last %}-{% endif %}{% endfor %}",
    "{% macro show(v) %}{% if v is mapping %}{ {%- for k, w in v.items() %}{{ k }}:{{ show(w) }} {% endfor -%} }{% elif v is string %}'{{ v }}'{% elif v is iterable %}[{% for w in v %}{{ show(w) }},{% endfor %}]{% else %}{{ v }}{% endif %}{% endmacro %}{{ show(nested) }}",
    "{% set x = ['a', 'b'] %}{{ x[0] }}{{ x.0 }}{% set x = x + ['c'] %}{{ x|join }}",
    "{% if 'a' in L and n > 2 or no %}y{% endif %}",
    "{% if not (yes and no) %}y{% endif %}",
    "{% if n == 3 and f == 2.5 %}y{% endif %}",
    "{% if undefd %}y{% else %}n{% endif %}",
    "{% if none is none and undefd is undefined %}y{% endif %}",
    "{% if users[0]['r'] == 'u' %}{% set first = users[0]['r'] %}{% set rest = users[1:] %}{% else %}{% set rest = users %}{% endif %}{{ first }}{{ rest|length }}",
    "{% for x in users[::-1] %}{{ loop.index0 }}{{ x.r }}{% endfor %}",
    "{%- for k, v in {'b': [1, 2], 'a': {'c': none}}.items() %}{{ k }}={{ v|tojson }};{%- endfor %}",
    "{% for x in L %}{% with y = loop.index %}{{ y }}{% endwith %}{% endfor %}",
    "{% set ns = namespace(a='x') %}{% filter upper %}{{ ns.a }}{% set ns.a = 'y' %}{% endfilter %}{{ ns.a }}",
    "{% macro m(x) %}{% set x = x + 1 %}{{ x }}{% endmacro %}{{ m(1) }}{{ m(1) }}",
    "{% for i in range(3) %}{% for i in range(2) %}{{ i }}{% endfor %}{{ i }};{% endfor %}",
    "{% for i in range(2) %}{% set i = i * 10 %}{{ i }}{% endfor %}{{ i }}",
    "{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = x + 1 %}{{ x }};{% endfor %}{{ x }}",
    "{% macro a() %}{% set x = 1 %}{{ b() }}{% endmacro %}{% macro b() %}{{ x is defined }}{% endmacro %}{{ a() }}",
    "{{ caller is defined }}{{ varargs is defined }}",
    "{% call(x) n() %}{% endcall %}",
    "{% for x in [[1,2],[3]] %}{% for y in x %}{% if y == 2 %}{% break %}{% endif %}{{ y }}{% endfor %}|{% endfor %}",
]


def language():
    expressions = [("{{ " + e + " }}", "basic") for e in EXPRESSIONS]
    third = len(expressions) // 2
    yield "expressions0", {"basic": BASIC}, expressions[:third]
    yield "expressions1", {"basic": BASIC}, expressions[third:]
    yield "statements", {"basic": BASIC}, [(t, "basic") for t in STATEMENTS]


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a <city> & more.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "A city, e.g. Zürich"}, "unit": {"type": "string", "enum": ["C", "F"]}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "Time.", "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "unit": "C"}}}]}


def conversations():
    base = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "tools": None, "documents": None,
            "add_generation_prompt": True}
    user = {"role": "user", "content": "Hi there"}
    answer = {"role": "assistant", "content": "Hello! <think> not a tag"}
    return {
        "one": {**base, "messages": [user]},
        "system": {**base, "messages": [{"role": "system", "content": " Be brief. "}, user]},
        "turns": {**base, "add_generation_prompt": False,
                  "messages": [{"role": "system", "content": "S"}, user, answer, {"role": "user", "content": "  More\n\n?  "}]},
        "thought": {**base, "enable_thinking": False, "messages": [user, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nAnswer"},
                                                                      {"role": "user", "content": "Next"}]},
        "reasoning": {**base, "enable_thinking": True, "add_generation_prompt": False,
                      "messages": [user, {"role": "assistant", "reasoning_content": "because", "content": "So."}]},
        "tools": {**base, "tools": TOOLS, "messages": [user, CALL, {"role": "tool", "tool_call_id": "call00001", "name": "get_weather",
                                                                         "content": '{"t": 21}'}]},
        "tools_system": {**base, "tools": TOOLS, "add_generation_prompt": False,
                         "messages": [{"role": "system", "content": "Sys"}, user, CALL,
                                      {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "21"}, answer]},
        "parts": {**base, "messages": [{"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "image"},
                                                                       {"type": "text", "text": "this?"}]}]},
        "wrong_order": {**base, "messages": [user, user]},
        "documents": {**base, "documents": [{"title": "T1", "text": "Text one"}, {"title": "T2", "text": "Text two"}], "messages": [user]},
        "empty": {**base, "messages": []},
        "unicode": {**base, "messages": [{"role": "user", "content": "Grüße 世界 🦙\u200b\tend "}]},
    }


def detection_templates():
    loops = ["{% for message in messages %}", "{% for m in messages[1:] %}", "{% set ms = messages %}{% for m in ms %}",
             "{% for message in messages if message.role == 'user' %}", "{% for message in messages|list %}"]
    bodies = ["{{ %s.content }}", "{{ %s['content'] }}", "{% for c in %s.content %}{{ c.text }}{% endfor %}",
              "{% for c in %s['content'] %}{{ c['text'] }}{% endfor %}", "{% for c in %s['content']|selectattr('type', '==', 'text') %}x{% endfor %}",
              "{% set content = %s.content %}{% for c in content %}{{ c }}{% endfor %}", "{% set t = %s.content %}{% for c in t %}{{ c }}{% endfor %}",
              "{% if %s.content is string %}a{% endif %}", "{{ render(%s.content) }}", "{% for c in %s.tool_calls %}{{ c }}{% endfor %}",
              "{% for c in %s.content[1:] %}{{ c }}{% endfor %}"]
    for loop, body in itertools.product(loops, bodies):
        variable = "m" if " m in" in loop else "message"
        yield loop + body.replace("%s", variable) + "{% endfor %}"
    yield "{% macro render(content) %}{% for c in content %}{{ c }}{% endfor %}{% endmacro %}{% for m in messages %}{{ render(m.content) }}{% endfor %}"
    yield "{% macro render(body) %}{% for c in body %}{{ c }}{% endfor %}{% endmacro %}{% for m in messages %}{{ render(m['content']) }}{% endfor %}"
    yield "{% macro render(body) %}{% for c in body %}{{ c }}{% endfor %}{% endmacro %}{% for m in messages %}{{ render(body=m.content) }}{% endfor %}"
    yield "{% macro render(content) %}{% for c in content %}{{ c }}{% endfor %}{% endmacro %}{% for m in messages %}{{ m.content }}{% endfor %}"
    yield "{% macro render(body) %}{% for c in body %}{{ c }}{% endfor %}{% endmacro %}{% for m in messages %}{{ render(m.role) }}{% endfor %}"
    yield "{% for a, b in messages %}{% endfor %}"
    yield "{% set a, b = messages %}x"
    yield "{% for content in content %}{% endfor %}"
    yield "{{ messages[0].content }}"
    yield "{% if x %"
    yield "plain"


class RandomTemplates:
    """Expressions and small statements over a fixed context; the same seed gives the same templates."""

    context = {"a": 3, "b": -2, "f": 1.5, "s": "Hello wOrld", "t": "a,b;c", "u": "Ünï 🦙x", "e": "", "l": [3, 1, 2], "w": ["bb", "A", "c"],
               "d": {"k": 1, "x": "y", "n": None}, "p": [{"n": "x", "v": 2}, {"n": "Y", "v": 1}, {"n": "x", "v": 3}], "yes": True, "none": None}

    def __init__(self, random):
        self.random = random

    def pick(self, *options):
        return self.random.choice(options)

    def template(self):
        r = self.random.random()
        if r < 0.7:
            return "{{ " + self.expression(3) + " }}"
        e = self.expression
        return self.pick(
            lambda: "{% for i in " + self.sequence(2) + " %}{{ i }}" + self.pick("{{ loop.index }}", "{{ ',' if not loop.last }}", "", "{{ loop.nextitem }}") + "{% else %}E{% endfor %}",
            lambda: "{% if " + e(2) + " %}" + "{{ " + e(2) + " }}{% else %}{{ " + e(1) + " }}{% endif %}",
            lambda: "{% set q = " + e(2) + " %}{{ q }}{{ q is " + self.test() + " }}",
            lambda: "{% macro m(x, y=" + e(1) + ") %}{{ x }}{{ y }}{% endmacro %}{{ m(" + e(2) + ") }}",
            lambda: "x {%- if " + e(1) + " -%} y {% endif %}\n {{ " + e(1) + " }}",
            lambda: "{% set ns = namespace(v=" + e(1) + ") %}{% for i in " + self.sequence(1) + " %}{% set ns.v = " + self.pick("i", "ns.v ~ i", "[ns.v, i]") + " %}{% endfor %}{{ ns.v }}",
            lambda: "{% for i in " + self.sequence(1) + " if i " + self.pick("!=", "==", "is not") + " " + self.pick("none", "1") + " %}{{ i }};{% endfor %}",
            lambda: "{% for k, v in d.items() %}{{ k ~ " + e(1) + " }}{{ v }}{% endfor %}",
        )()

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        e = lambda: self.expression(depth - 1)
        return self.pick(
            self.atom, self.atom,
            lambda: e() + " " + self.pick("+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in") + " " + e(),
            lambda: self.number(depth - 1) + " " + self.pick("+", "-", "*", "/", "//", "%", "**", "<", ">") + " " + self.number(depth - 1),
            lambda: "(" + e() + ")", lambda: "not " + e(), lambda: "-" + self.number(depth - 1),
            lambda: e() + " if " + e() + " else " + e(),
            lambda: "[" + e() + ", " + e() + "]", lambda: "(" + e() + ",)", lambda: "{'k': " + e() + "}",
            lambda: self.string(depth - 1), lambda: self.string(depth - 1), lambda: self.sequence(depth - 1), lambda: self.sequence(depth - 1),
            lambda: e() + "|" + self.pick("string", "list", "length", "tojson", "default('D')", "int", "float", "upper", "first", "last", "e", "trim", "title"),
            lambda: "(" + e() + ") is " + self.pick("", "not ") + self.test(),
            lambda: "(" + e() + ")[" + self.pick("0", "-1", "1", "'k'", "a") + "]",
            lambda: "(" + self.string(depth - 1) + ")[" + self.pick("1:", ":-1", "::2", "::-1", "1:3", "-2:") + "]",
        )()

    def atom(self):
        return self.pick("a", "b", "f", "s", "t", "u", "e", "l", "w", "d", "p", "yes", "none", "nope", "1", "0", "2", "10", "1.0", "0.5", "'x'", "''", "'é'",
                         "d.k", "d.nope", "d['x']", "p[0].n", "l[0]", "w[-1]", "range(3)", "true", "()")

    def number(self, depth):
        return self.pick("a", "b", "f", "1", "2", "0", "7", "2.5", "d.k", "l[0]", "l|length", "l|sum", "l|max", "p|map(attribute='v')|sum", "'12'|int", "f|round", "a|abs")

    def string(self, depth):
        base = self.pick("s", "t", "u", "e", "'x y  z'", "w|join('-')", "d|tojson", "a|string", "'%s|%d' % (s, a)", "'{}-{:>4}'.format(a, f)")
        method = self.pick(".upper()", ".lower()", ".title()", ".strip()", ".capitalize()", ".swapcase()", "|title", "|capitalize", "|reverse", ".replace('l', 'L')", ".lstrip('H')",
                           ".center(13, '*')", ".zfill(9)", "|replace('o', '0')", "|truncate(5)", "|indent(1)", "|wordcount", ".find('o')", ".count('l')",
                           ".startswith('H')", ".endswith('x')", ".split()|join('+')", ".partition(',')|list", "|length", "|urlencode", "|center(15)", ".isalpha()", "|trim('H')")
        return "(" + base + ")" + method

    def sequence(self, depth):
        base = self.pick("l", "w", "p|map(attribute='n')|list", "range(4)|list", "t.split(',')", "s.split('o')", "d.items()|list", "d.keys()|list", "[a, b, f]", "['b', 'a', 'B']",
                         "s|list", "p|groupby('n')|map('first')|list")
        step = self.pick("", "|sort", "|reverse|list", "|unique|list", "|map('string')|list", "|select|list", "|reject('none')|list", "[1:]", "[::-1]", "|batch(2)|list", "|slice(2)|list",
                         "|map('upper')|list", "|sort(reverse=true)", "|select('string')|list", "[:2] + [0]")
        return "(" + base + ")" + step

    def test(self):
        return self.pick("defined", "none", "string", "number", "mapping", "sequence", "iterable", "integer", "float", "boolean", "odd", "even", "divisibleby 2", "in [1, 'x']",
                         "eq 1", "sameas none", "lower", "upper", "callable", "true")
