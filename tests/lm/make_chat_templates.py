#!/usr/bin/env python3
"""Makes tests/lm/data/chat_templates.json with the package `jinja2` from PyPI: templates in the style of published models, and small
ones for each construct, with what jinja2 makes of them when it is set up as the package `transformers` sets it up. The test reads
them; this script is only needed to make them anew.

A case is {"template", "messages", "options", "result"}; a template that fails has "fails" for its result.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.sandbox
from jinja2.ext import Extension, loopcontrols

FILE = pathlib.Path(__file__).parent / "data" / "chat_templates.json"
TIME = 1715940000  # a day in May 2024


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.fromtimestamp(TIME).strftime(format)
    return made


CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The first message may be that of the system. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start|>system<|end_header|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "Answer with JSON for these functions:" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("no user message to put the tools into") }}
    {%- endif %}
    {{- '<|start|>user<|end_header|>\\n\\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start|>' + message['role'] + '<|end_header|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start|>assistant<|end_header|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start|>ipython<|end_header|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end_header|>\\n\\n' }}
{%- endif %}
"""

QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call these functions:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- User and assistant take turns, but for calls. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("user and assistant have to take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("the id of a call has 9 characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + '}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("unknown role: " + message.role) }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles have to alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("unknown content") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<|User|>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{'<|Assistant|><|calls|>' + tool['type'] + '\\n' + '```json' + '\\n' + tool['function']['arguments'] | tojson + '\\n```<|call_end|>'}}{%- set ns.is_first = true -%}{%- else %}{{'\\n' + tool['function']['name']}}{%- endif %}{%- endfor %}{{'<|end|>'}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<|Assistant|>' + content + eos_token}}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<|outputs|>' + message['content'] + '<|output_end|>'}}{%- set ns.is_output_first = false %}{%- else %}{{'\\n' + message['content']}}{%- endif %}{%- endif %}{%- endfor -%}{% if ns.is_tool %}{{'<|outputs_end|>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<|Assistant|><think>\\n'}}{% endif %}"""

PHI = """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + (message['content'] or '') + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"""

# A macro that calls itself, as templates that write types for tools have it.
TYPES = """{%- macro type_of(spec, depth=0) -%}
    {%- set names = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} -%}
    {%- if spec.type is not string and spec.type is iterable -%}
        {{- spec.type | map('upper') | join(" | ") -}}
    {%- elif spec.type in names -%}
        {{- names[spec.type] -}}
    {%- elif spec.type == "array" -%}
        {{- "list[" + type_of(spec['items'], depth=depth + 1) + "]" -}}
    {%- elif spec.type == "object" and spec.properties is defined -%}
        {%- set parts = namespace(list=[]) -%}
        {%- for name, inner in spec.properties | dictsort -%}
            {%- set parts.list = parts.list + [name ~ ": " ~ type_of(inner, depth + 1)] -%}
        {%- endfor -%}
        {{- "{" ~ parts.list | join(", ") ~ "}" -}}
    {%- else -%}
        {{- "any@%d" % depth -}}
    {%- endif -%}
{%- endmacro -%}
{%- for tool in tools %}
def {{ tool.function.name }}(
    {%- for name, spec in tool.function.parameters.properties.items() %}
        {{- name }}: {{ type_of(spec) }}
        {%- if name not in (tool.function.parameters.required or []) %} = None{% endif %}
        {%- if not loop.last %}, {% endif %}
    {%- endfor -%}
):
    {{ tool.function.description | default('no description', true) | indent(4) }}
{% endfor %}
{%- generation %}{{ messages | map(attribute='content') | select('string') | join('|') }}{% endgeneration %}"""

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place.\nNow.", "parameters": {
    "type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "Größe \"<&>\""}, "days": {"type": "array", "items": {"type": "integer"}},
        "where": {"type": "object", "properties": {"lon": {"type": "number"}, "lat": {"type": "number"}}}, "unit": {"type": ["c", "f"]}, "other": {"type": "odd"}}}}}
PLAIN = [{"role": "user", "content": "Hello, world"}]
TALK = [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "Hi 😀"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello! "},
        {"role": "user", "content": "  What's 1+1?  \n"}]
CALLS = TALK[:2] + [{"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Köln", "n": 1.5, "ok": True, "none": None}}}]},
                    {"role": "tool", "content": "21 °C", "name": "get_weather"}, {"role": "assistant", "content": "It is 21 °C."}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}]}]

SMALL = """
{{ 1 + 2 * 3 - 4 // 3 % 2 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1e3 }} {{ 1e16 }} {{ 1.5e-7 }} {{ 0.1 + 0.2 }} {{ 10 // 3.0 }} {{ 1_000 }} {{ 0xff }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.0 }} {{ 'a' 'b' }} {{ "q'q" }} {{ ['q\\'q', "d\\"d", 'n\\n', 'é', '\\x07'] }} {{ (1,) }} {{ () }} {{ {'a': [1, none, {'b': 2.5}]} }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'a' in 'cat' }} {{ 1 not in [2] }} {{ 'k' in {'k': 1} }} {{ not 1 in [1] }}
{{ nothing }}|{{ nothing is defined }}|{{ nothing | default('x') }}|{{ '' | default('y', true) }}|{{ nothing | length }}|{{ 'x' in nothing }}|{{ nothing == none }}
{{ nothing.attribute }}
{{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'aäöü'[::2] }} {{ [1, 2, 3, 4][-3:-1] }} {{ [1, 2, 3][5:] }} {{ 'x'[9] }} {{ [1, 2, 3][::-2] }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a b '.split(none, 1) }} {{ 'x\\ny\\r\\nz\\n'.splitlines() }} {{ 'a=b=c'.partition('=') }}
{{ '  a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xya'.lstrip('yx') }}|{{ 'a..'.rstrip('.') }}|{{ 'abc'.replace('b', 'BB') }}|{{ 'aaa'.replace('a', 'b', 2) }}|{{ 'abc'.upper() }}|{{ 'ÄB'.lower() }}
{{ 'hello wOrld'.title() }} {{ 'hELLO'.capitalize() }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abc'.find('x') }} {{ 'aXbX'.count('X') }} {{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }}
{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }} {{ '-'.join(['a', 'b']) }} {{ 'a'.startswith(('b', 'a')) }} {{ 'abc'.endswith('bc') }} {{ '7'.zfill(3) }} {{ 'a'.ljust(3) }}| {{ 'a'.center(4, '*') }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [3, 1] | sort(reverse=true) }} {{ [1, 1, 2] | unique | list }} {{ [1, 2, 3] | sum }} {{ [1, 2] | max }} {{ [] | first }}| {{ [1, 2] | last }}
{{ [1, 2, 3, 4] | select('odd') | list }} {{ [1, 2, 3] | reject('equalto', 2) | list }} {{ [{'a': 1}, {'a': 2}, {}] | selectattr('a') | list }} {{ [{'a': 1}, {'a': 2}] | map(attribute='a') | list }} {{ [{'a': {'b': 3}}] | map(attribute='a.b') | list }} {{ ['a', 'b'] | map('upper') | join(',') }}
{{ {'b': 1, 'a': 2} | dictsort }} {{ {'a': 1}.items() | list }} {{ {'a': 1} | items | list }} {{ {'a': 1}.get('x') }} {{ {'a': 1}.get('x', 5) }} {{ {'a': 1}.keys() | list }} {{ {'items': 1}['items'] }} {{ {'a': 1}.a }} {{ {1: 2}[1] }}
{{ 'a\\nb\\n\\nc' | indent }}| {{ 'a\\nb' | indent(2, true) }} {{ 'abc' | reverse }} {{ [1, 2] | reverse | list }} {{ '<a&"\\'>' | e }} {{ 3.7 | int }} {{ '12' | int + 1 }} {{ 'x' | int(5) }} {{ '1.5' | float }} {{ 2.5 | round }} {{ 2.345 | round(2) }} {{ 2.1 | round(method='ceil') }} {{ -3 | abs }}
{{ 'one two three four' | truncate(12) }} {{ 'one two' | wordcount }} {{ '%s is %d, %.2f' | format('a', 3, 1.5) }} {{ 'a %s' % 'b' }} {{ '%05d|%x' % (42, 255) }} {{ 'x' | upper | lower | title }} {{ 'a b' | urlencode }} {{ [1, 2, 3] | batch(2, 0) | list }}
{{ {'a': [1, {'b': none}], 'ü': '"\\\\\\n\\t\\u0001'} | tojson }} {{ [1.0, 1e20, true] | tojson }} {{ {'b': [], 'a': {}} | tojson(indent=2, sort_keys=true) }} {{ [1, [2, 3]] | tojson(separators=(',', ':')) }} {{ 'x' | tojson | length }}
{{ 1 is integer }} {{ 1.0 is float }} {{ true is integer }} {{ true is number }} {{ 'a' is string }} {{ [] is sequence }} {{ {} is mapping }} {{ 'a' is iterable }} {{ none is none }} {{ 3 is divisibleby 3 }} {{ 3 is odd }} {{ 'a' is in ['a'] }} {{ 1 is eq(1) }} {{ 'a' is not string }} {{ range is callable }} {{ 'ab' is lower }} {{ true is true }} {{ 1 is true }} {{ none is sameas none }}
{{ 'yes' if 1 else 'no' }} {{ 'yes' if 0 }}| {{ 1 and 'b' }} {{ 0 or 'c' }} {{ not '' }} {{ (1 if true else 2) + 1 }} {{ 'a' if false else 'b' if false else 'c' }}
{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.changed(x > 1) }};{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %}{% for a, b in {'x': 1, 'y': 2}.items() %}{{ a }}{{ b }}{% endfor %}{% for x in range(10) if x % 3 == 0 %}{{ x }}/{{ loop.length }} {% endfor %}
{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}{% for x in 'äb' %}[{{ x }}]{% endfor %}{% for x in {'k': 1} %}{{ x }}{% endfor %}{{ range(2, 8, 3) | list }}{{ range(3, 0, -1) | list }}
{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t %}block {{ x }}{% endset %}{{ t }}{% set u | upper | trim %} up {% endset %}{{ u }}
{% macro f(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=3) }} {{ f() }} {{ f(b=1, a=0) }}{% macro g() %}[{{ caller(1) }}]{% endmacro %}{% call(v) g() %}body {{ v }}{% endcall %}
{% set ns = namespace(a=1, b='x') %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}{% with q = 5 %}{{ q }}{% endwith %}{{ q is defined }}{% filter upper %}shout {{ x }}{% endfilter %}
{% raw %}{{ not run }} {% if %}{% endraw %}|{# a comment #}|{{- ' a ' -}}  |  {%- if true -%}  b  {%- endif -%}  |{%+ if true %}c{% endif +%}
{{ {'a': 1, 'a': 2} }} {{ dict(a=1, b='c') }} {{ [1] + [2] }} {{ 'ab' * 2 }} {{ [0] * 3 }} {{ '\\u00e9\\x41\\101' }} {{ {'a': none}.a is none }} {{ [[1, 2], [3]] | map('first') | list }} {{ [1, 2] | string }} {{ true | string }} {{ none | string }} {{ [true, none] }}
{{ 1 if x is defined and x is not none and x > 2 else 'q' }} {{ 'a' is string and 'b' is string }} {{ not nothing is defined }} {{ nothing is defined or true }} {{ (1, 2) | list }} {{ [1, 2] | join(', ') }} {{ ['a', 1, none] | join('-') }} {{ [{'a': 'x'}] | join(',', attribute='a') }}
{{ [{'k': 'a', 'v': 1}, {'k': 'b', 'v': 2}, {'k': 'a', 'v': 3}] | groupby('k') | map('first') | list }} {{ [{'a': 2}, {'a': 1}] | sort(attribute='a') | map(attribute='a') | list }} {{ 'İß' | upper }} {{ [1, 2, 3] | length - 1 }} {{ -1 | abs }} {{ 2 * -3 }} {{ +4 }} {{ - 4 }}
{{ raise_exception('refused: ' + 'x') }}
{{ 1 / 0 }}
{{ 'a' + 1 }}
{{ none + 'a' }}
{{ [1].append(2) }}
{{ 1 | nofilter }}
{{ 1 is notest }}
{{ undefined_function() }}
{{ none | length }}
{% for x in none %}{% endfor %}
{{ 'abc'.index('z') }}
{% if %}{% endif %}
{{ 'a }}
{% for x in [1] %}
{{ 1 2 }}
{% endif %}
{% unknown %}
{{ (1 }}
{{ f(a=1, 2) }}
{{ [1] in {1: 2} }}
{{ 5 | round }} {{ "it's a-b (c) ['d']" | title }} {{ "it's a-b" | wordcount }} {{ 1[1:] is defined }}
{{ 'a' % 1 }}
{{ ' a b '.rsplit(none, 1) }}
{{ 'a' < 1 }}
{{ {} | tojson(ensure }}
{% include 'x' %}
""".strip("\n").split("\n")

WHITESPACE = ["  {% if true %}\n  a\n  {% endif %}\n b", "{% if true %}\n\n{% endif %}\n", "a\n  {%- if true %} b{% endif %}\n\n", "x {# c #}\ny", "x\n  {# c #}\ny\n", "{{ 1 }}\n{{ 2 }}\n\n", "\r\na\r\n{% if true %}\r\nb{% endif %}\r\n",
              "a {%- raw %} {{ x }} {% endraw -%} b", "  {% raw %}\n x\n  {% endraw %}\n y", "{% set x = 1 -%}\n\n  y", "{{ '{{' }}{{ {'a': {'b': 1}}['a'] }}", "{% for i in [1,2] -%}\n  {{ i }}\n{%- endfor %}", "a{#- b -#}  c", "\t{%+ if true %}a{% endif %}", "{{ 'a\nb' }}", "a\n{% if true +%}\nb\n{% endif %}", "{{-1}}", "{{ 1 -}}  x", "}} {% if '%}' %}a{% endif %} %}"]


def cases():
    for name, template in [("chatml", CHATML), ("llama", LLAMA), ("qwen", QWEN), ("mistral", MISTRAL), ("gemma", GEMMA), ("deepseek", DEEPSEEK), ("phi", PHI), ("types", TYPES)]:
        for messages in (PLAIN, TALK, CALLS, PARTS, []):
            for tools in (None, [TOOL], [TOOL, TOOL]):
                yield name, template, messages, {"tools": tools}
            yield name, template, messages, {"add_generation_prompt": False, "variables": {"enable_thinking": False, "tools_in_user_message": False}}
    for template in SMALL + WHITESPACE:
        yield "small", template, PLAIN, {}


def run(template, messages, options):
    variables = {"bos_token": "<s>", "eos_token": "</s>", "messages": messages, "add_generation_prompt": options.get("add_generation_prompt", True),
                 "tools": options.get("tools"), "documents": None, **options.get("variables", {})}
    try:
        return {"result": environment().from_string(template).render(**variables)}
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError):
        return {"fails": True}


def main():
    templates, rows = {}, []
    for name, template, messages, options in cases():
        known = templates.setdefault(template, len(templates))
        rows.append({"name": name, "template": known, "messages": messages, "options": {k: v for k, v in options.items() if v is not None}, **run(template, messages, options)})
    made = {"time": TIME, "templates": list(templates), "cases": rows}
    FILE.write_text(json.dumps(made, indent=0, separators=(",", ":")) + "\n", encoding="ascii")
    print(len(rows), "cases,", sum("fails" in row for row in rows), "fail")


if __name__ == "__main__":
    main()
