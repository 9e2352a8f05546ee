"""Forms as a browser sends them: all fields of the page, and what somebody typed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.forms import CheckboxInput
from django.test import Client

from tests.admin.units import answer


class Form(HTMLParser):
    """The form of a page that has a field of this name."""

    def __init__(self, html: str, field: str) -> None:
        super().__init__(convert_charrefs=True)
        self.action = ""
        self.fields: dict[str, str] = {}
        self._forms = [("", self.fields)]
        self._select = self._textarea = ""
        self.feed(html)
        for action, fields in self._forms:
            if field in fields:
                self.action, self.fields = action, fields
        assert field in self.fields, (field, self._forms)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        fields = self._forms[-1][1]
        name = given.get("name", "")
        if tag == "form":
            self._forms.append((given.get("action", ""), {}))
        elif tag == "input" and self._is_sent(given):
            is_box = given.get("type") == "checkbox"
            fields[name] = given.get("value", "on" if is_box else "")
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select:  # the first one, or the chosen one
            if "selected" in given or self._select not in fields:
                fields[self._select] = given.get("value", "")
        elif tag == "textarea":
            self._textarea = name
            fields[name] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._textarea = ""

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self._forms[-1][1][self._textarea] += data.removeprefix("\n")

    @staticmethod
    def _is_sent(given: dict[str, str]) -> bool:
        kind = given.get("type", "text")
        is_button = kind in ("submit", "button", "reset")
        is_off = kind in ("checkbox", "radio") and "checked" not in given
        return bool(given.get("name")) and not is_button and not is_off

    def send(
        self, client: Client, address: str, typed: dict[str, Any], **button: str
    ) -> Any:
        """The answer to it, which is not rendered."""
        data = {**self.fields, **typed, **button}
        return answer(client, self.action or address, data)


def fields_of(context: dict[str, Any]) -> dict[str, str]:
    """The same fields, without the page: those of its form, and what is hidden."""
    form = context["form"]
    shown = {}
    for name in form.fields:
        widget, value = form[name].field.widget, form[name].value()
        if not isinstance(widget, CheckboxInput):
            text = widget.format_value(value) or ""
            shown[name] = str(text[0] if isinstance(text, list) else text)
        elif value:
            shown[name] = "on"
    hidden = ("marks", "keys", "next")
    return shown | {name: str(context[name]) for name in hidden if name in context}
