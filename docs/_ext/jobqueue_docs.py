"""What the reference takes from the package itself, so that it cannot drift.

Each directive writes Markdown, which is parsed in its place. What people have to say,
such as the meaning of a column, stands in the page; it is an error if something of the
package is not spoken of there, or something that is not in it is.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from django.core.management import load_command_class
from django.db import connections
from django.db.models import NOT_PROVIDED, Field, Model
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from django_jobqueue import rooms
from django_jobqueue.conf import Conf, Setting
from django_jobqueue.domain.policy import UNSET, Policy
from django_jobqueue.metrics.catalogue import PRODUCER, cluster, host
from django_jobqueue.metrics.metric import Label


class MarkdownDirective(SphinxDirective):
    """A directive that is replaced by Markdown."""

    has_content = True

    def markdown(self) -> Iterable[str]:
        """The lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the lines where the directive stands."""
        lines = [line for text in self.markdown() for line in text.split("\n")]
        source, _ = self.get_source_info()
        container = nodes.Element()
        container.document = self.state.document
        text = StringList(lines, source=source)
        self.state.nested_parse(text, self.content_offset, container, match_titles=True)
        return list(container.children)

    def said(self) -> dict[str, str]:
        """What the page says: ``name: text`` on lines of the content; a line that is
        indented goes on."""
        found: dict[str, str] = {}
        name = ""
        for line in self.content:
            if line.startswith(" "):
                found[name] += " " + line.strip()
            elif line.strip():
                name, colon, text = line.partition(":")
                if not colon or name in found:
                    raise self.error(f"{line!r} is not 'name: text', or is there twice")
                found[name] = text.strip()
        return found

    def spoken_of(self, wanted: Iterable[str]) -> dict[str, str]:
        """The same, if it speaks of all of these and of nothing else."""
        said, names = self.said(), list(wanted)
        missing = [name for name in names if name not in said]
        strange = [name for name in said if name not in names]
        if missing or strange:
            raise self.error(f"not spoken of: {missing}; not in the code: {strange}")
        return said


class SettingsDirective(MarkdownDirective):
    """The settings that are named in the content, with what the page adds to each."""

    def markdown(self) -> Iterable[str]:
        """A heading and three facts for each."""
        for name, text in self.said().items():
            setting = Conf.settings.get(name)
            if setting is None:
                raise self.error(f"{name} is no setting")
            shown_settings(self.env.app).add(name)
            yield from _setting(setting, text)


class OptionsDirective(MarkdownDirective):
    """The options of ``@job``, with their defaults."""

    def markdown(self) -> Iterable[str]:
        """A heading, the type and default, and what the page says."""
        fields: dict[str, Any] = {
            "name": None,
            **{name: field.default for name, field in _policy_fields().items()},
        }
        for name, text in self.spoken_of(fields).items():
            kind, _, meaning = text.partition(" | ")
            yield f"(option-{name})=\n### `{name}`\n"
            default = _default_of_option(name, fields[name])
            yield f"{meaning}\n\n{_facts(Type=kind, Default=default)}\n"


class HelpDirective(MarkdownDirective):
    """The ``--help`` of a command, or of one of its subcommands."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = False

    def markdown(self) -> Iterable[str]:
        """As a terminal of 80 columns shows it."""
        name, *rest = self.arguments[0].split()
        command = load_command_class("django_jobqueue", name)
        parser: Any = command.create_parser("manage.py", name)
        for word in rest:
            (group,) = (a for a in parser._actions if hasattr(a, "_name_parser_map"))
            parser = group.choices[word]
        yield "```text"
        yield f"$ python manage.py {self.arguments[0]} --help"
        yield parser.format_help().rstrip()
        yield "```"


class TreeDirective(MarkdownDirective):
    """The drawing in the docstring of a module."""

    required_arguments = 1
    has_content = False

    def markdown(self) -> Iterable[str]:
        """What follows the first double colon, as far as it is indented."""
        text = inspect.getdoc(import_module(self.arguments[0])) or ""
        drawing = re.search(r"::\n\n((?:    .*\n|\n)+)", text)
        if drawing is None:
            raise self.error("there is no drawing in this docstring")
        yield "```text"
        yield textwrap.dedent(drawing.group(1)).strip()
        yield "```"


class ColumnsDirective(MarkdownDirective):
    """The columns of a table; the content says what the help texts do not."""

    required_arguments = 1

    def markdown(self) -> Iterable[str]:
        """A row for each column."""
        model = model_named(self.arguments[0])
        fields = {f.column: f for f in model._meta.concrete_fields if f.column}
        said = self.spoken_of(fields)
        yield f"Table `{model._meta.db_table}`, model `{model.__name__}`.\n"
        yield "| Column | Type | Default | Meaning |"
        yield "| --- | --- | --- | --- |"
        for name, field in fields.items():
            help_text = str(field.help_text)
            meaning = " ".join(part for part in (said[name], help_text) if part)
            if not meaning:
                raise self.error(f"nothing is said of {name}")
            kind = _type_of_column(field)
            default = _default_of_column(field)
            yield f"| `{name}` | {kind} | {default} | {meaning} |"


class IndexesDirective(MarkdownDirective):
    """The indexes of a table; the content says what each is for."""

    required_arguments = 1

    def markdown(self) -> Iterable[str]:
        """A row for each index, and one for the primary key."""
        model = model_named(self.arguments[0])
        indexes = {index.name: index for index in model._meta.indexes}
        said = self.spoken_of(indexes)
        yield "| Index | Columns | Only rows | For |"
        yield "| --- | --- | --- | --- |"
        for name, index in indexes.items():
            columns = _columns_of_index(index)
            condition = _condition_of_index(model, index)
            yield f"| `{name}` | {columns} | {condition} | {said[name]} |"


def model_named(name: str) -> type[Model]:
    """The model of any room with this name."""
    return next(model for model in rooms.models() if model.__name__ == name)


def shown_settings(app: Sphinx) -> set[str]:
    """The settings that some page has shown."""
    if not hasattr(app.env, "jobqueue_settings"):
        app.env.jobqueue_settings = set()  # type: ignore[attr-defined]
    found: set[str] = app.env.jobqueue_settings  # type: ignore[attr-defined]
    return found


def check_settings(app: Sphinx, env: Any) -> None:
    """Every setting must be shown somewhere."""
    missing = Conf.settings.keys() - shown_settings(app)
    if missing:
        raise ValueError(f"No page shows the settings {sorted(missing)}")


def _setting(setting: Setting[Any], text: str) -> Iterable[str]:
    kind = setting.described_as
    if setting.minimum is not None:
        kind += f", at least {setting.minimum:g}"
    if setting.optional:
        kind += ", or `None`"
    yield f"(setting-{setting.name.lower().replace('_', '-')})=\n### `{setting.name}`\n"
    yield f"{setting.help} {text}\n"
    default = f"`{setting.default!r}`"
    yield (
        _facts(
            Default=default,
            Kind=kind,
            Flag=f"`{setting.flag}`",
            Variable=f"`{setting.variable}`",
        )
        + "\n"
    )


def _facts(**facts: str) -> str:
    return "\n".join(f":{name}: {value}" for name, value in facts.items())


def _policy_fields() -> dict[str, Any]:
    return dict(Policy.__dataclass_fields__)


def _default_of_option(name: str, default: Any) -> str:
    if name == "name":
        return "the module, without a last `.jobs`, and the function"
    if default is UNSET:
        setting = name.upper()
        place = f"#setting-{setting.lower().replace('_', '-')}"
        return f"the setting [`{setting}`](settings.md{place})"
    if callable(default):
        return f"`{default.__name__!r}`"
    if isinstance(default, frozenset):
        return "`()`"
    return f"`{str(default)!r}`" if isinstance(default, str) else f"`{default!r}`"


def _type_of_column(field: Field[Any, Any]) -> str:
    kind = field.db_type(connections["default"]) or ""
    short = {"timestamp with time zone": "timestamptz", "double precision": "float8"}
    kind = short.get(kind, kind).replace(" collate", " COLLATE")
    return f"`{kind}`" + (", or null" if field.null else "")


def _default_of_column(field: Field[Any, Any]) -> str:
    if getattr(field, "db_default", NOT_PROVIDED) is NOT_PROVIDED:
        if "Auto" in type(field).__name__:
            return "the next number"
        return "null" if field.null else "none"
    default: Any = field.db_default
    function = getattr(default, "function", None)
    if function:
        return f"`{function}()`"
    value = getattr(default, "value", default)
    if isinstance(value, bool):
        return f"`{value}`".lower()
    return f"`{str(value)!r}`" if isinstance(value, str) else f"`{value!r}`"


def _columns_of_index(index: Any) -> str:
    names = [
        f"`{name}`" + (" descending" if order == "DESC" else "")
        for name, order in index.fields_orders
    ]
    for expression in index.expressions:
        source = getattr(expression, "expression", expression)
        descending = getattr(expression, "descending", False)
        names.append(f"`{source.name}`" + (" descending" if descending else ""))
    return ", ".join(names)


def _condition_of_index(model: type[Model], index: Any) -> str:
    if index.condition is None:
        return "all"
    return f"`{_condition(index.condition)}`"


def _condition(q: Any) -> str:
    parts = []
    for child in q.children:
        if not isinstance(child, tuple):
            parts.append(_condition(child))
            continue
        name, value = child
        if name.endswith("__isnull"):
            word = "is null" if value else "is not null"
            parts.append(f"{name.removesuffix('__isnull')} {word}")
        elif isinstance(value, bool):
            parts.append(name if value else f"not {name}")
        else:
            parts.append(f"{name} = '{value}'")
    text = f" {q.connector.lower()} ".join(parts)
    return text.replace(" = ", " <> ") if q.negated else text


class MetricsDirective(MarkdownDirective):
    """The metrics of the catalogue: of the cluster, of a host, or of a process that
    enqueues."""

    has_content = False
    required_arguments = 1

    def markdown(self) -> Iterable[str]:
        """A table of all."""
        yield "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |"
        groups = {"cluster": cluster(), "host": host(), "producer": PRODUCER}
        for metric in groups[self.arguments[0]].values():
            labels = "; ".join(map(_label, metric.labels)) or "–"
            meaning = metric.help
            if metric.otel:
                meaning += f" In OpenTelemetry: `{metric.otel}`."
            yield f"| `{metric.name}` | {metric.kind} | {labels} | {meaning} |"


def _label(label: Label) -> str:
    values = ", ".join(label.values)
    return f"`{label.name}`: {values}" if values else f"`{label.name}`"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    directives: Sequence[tuple[str, type[MarkdownDirective]]] = (
        ("jobqueue-settings", SettingsDirective),
        ("jobqueue-options", OptionsDirective),
        ("jobqueue-help", HelpDirective),
        ("jobqueue-tree", TreeDirective),
        ("jobqueue-columns", ColumnsDirective),
        ("jobqueue-indexes", IndexesDirective),
        ("jobqueue-metrics", MetricsDirective),
    )
    for name, directive in directives:
        app.add_directive(name, directive)
    app.connect("env-check-consistency", check_settings)
    # The pages depend on code that Sphinx does not watch.
    return {"parallel_read_safe": False, "env_version": 1}
