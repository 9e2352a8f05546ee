"""Django's tags of the admin's lists and pages, with the core's templates on the pages
of every room: ``{% load jobqueue_admin %}`` after Django's own.

Django looks for ``admin/<label of the app>/pagination.html`` and then for its own.
"""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.admin.templatetags import admin_list, admin_modify
from django.contrib.admin.templatetags.base import InclusionAdminNode
from django.template.base import Parser, Token
from django.template.library import InclusionNode

register = template.Library()


class RoomNode(template.Node):
    """Renders Django's node by the template of the model, or else of the core."""

    def __init__(self, node: InclusionAdminNode) -> None:
        self._node = node

    def render(self, context: Any) -> Any:
        """As Django's."""
        opts, name = context["opts"], self._node.template_name
        own = f"admin/{opts.app_label}/{opts.model_name}/{name}"
        names = [own, f"admin/jobqueue/{name}", f"admin/{name}"]
        engine = context.template.engine
        context.render_context[self._node] = engine.select_template(names)
        return InclusionNode.render(self._node, context)


def _of_any_room(library: Any, name: str) -> None:
    django = library.register.tags[name]

    def compiled(parser: Parser, token: Token) -> RoomNode:
        return RoomNode(django(parser, token))

    register.tag(name, compiled)


for each in ("admin_actions", "change_list_object_tools", "pagination", "result_list"):
    _of_any_room(admin_list, each)
_of_any_room(admin_modify, "change_form_object_tools")
