"""Formulas at one position of a workflow, compiled once: expressions, templates, parameter trees, paths.

A position determines the declared names and the template spelling of the dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from pointsman.definition.model.text import Text
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.naming_rules import names_at_large, spelling_of
from pointsman.engine.actions import ConstantValue, Test, Value
from pointsman.engine.plan import OutputWrite
from pointsman.engine.writes import Reducer
from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import PathRead, compile_expression
from pointsman.expressions.names import Names
from pointsman.expressions.parameters import SecretText, compile_parameters
from pointsman.expressions.paths import Path, compile_path
from pointsman.expressions.templates import compile_template
from pointsman.values import Json, JsonObject

WHOLE: Final = frozenset({"result", "$.result", "$"})
"""Expressions that mean the whole result."""

Patterns = tuple[tuple[tuple[str, ...], Reducer], ...]


@dataclass(frozen=True, slots=True)
class FormulaCompiler:
    """A compiler of the texts at one position of one workflow."""

    names: Names
    spelling: Literal["single", "double"]
    language: str
    all_languages: bool
    """Whether texts for people are kept in every available language, so that each person reads their own."""
    reducers: Patterns
    sources: str = ""
    """The reference texts of the workflow, joined into one."""

    def inside(self, *as_names: str) -> FormulaCompiler:
        """Return a compiler for the same position with additional names."""
        return replace(self, names=replace(self.names, as_names=self.names.as_names | set(as_names)))

    def value(self, source: str) -> Value:
        """Compile an expression."""
        return compile_expression(source, names=self.names).evaluate

    def test(self, source: str) -> Test:
        """Compile a condition."""
        return compile_expression(source, names=self.names).holds

    def reads(self, source: str) -> tuple[PathRead, ...]:
        """Return the paths that an expression reads."""
        return compile_expression(source, names=self.names).reads

    def text(self, source: Text | str) -> Value:
        """Compile a template; a template that is exactly one path keeps the type of its value."""
        raw = source.in_(self.language) if isinstance(source, Text) else source
        template = compile_template(raw, names=self.names, spelling=self.spelling)
        if template.fixed:
            return lambda env: raw if "\\" not in raw else template.render(env).text
        return lambda env: template.value(env, missing=env.missing)

    def rendered(self, source: Text | str) -> Value:
        """Compile a template whose result is always a string."""
        raw = source.in_(self.language) if isinstance(source, Text) else source
        template = compile_template(raw, names=self.names, spelling=self.spelling)

        def render(env: Environment) -> Json:
            found = template.render(env)
            if env.missing is not None:
                env.missing.extend(found.missing)
            return found.text

        return render

    def rendered_in_all(self, source: Text | None) -> Mapping[str, Value]:
        """Compile a template for each language; empty if the text has one language or only one is wanted."""
        texts = self.texts(source)
        return {language: self.rendered(text) for language, text in texts.items()}

    def texts(self, source: Text | None) -> Mapping[str, str]:
        """Return a text by language; empty if it has one language or only one is wanted."""
        if source is None or not self.all_languages or len(source.languages()) < 2:
            return {}
        return source.languages()

    def tree(self, source: Json) -> Value:
        """Compile a JSON tree whose strings are templates."""
        parameters = compile_parameters(source, names=self.names, spelling=self.spelling)
        if parameters.fixed:
            return ConstantValue(source)
        return lambda env: parameters.evaluate(env, missing=env.missing)

    def secrets(self, source: Json) -> tuple[SecretText, ...]:
        """Return the positions of secrets in a JSON tree."""
        return compile_parameters(source, names=self.names, spelling=self.spelling).secrets

    def path(self, source: str) -> Path:
        """Compile a write target."""
        return compile_path(source, names=self.names)

    def mapping(self, source: Mapping[str, str] | None) -> Value | None:
        """Compile a map from name to expression; its value is one object."""
        if not source:
            return None
        parts = [(name, self.value(text)) for name, text in source.items()]

        def gather(env: Environment) -> Json:
            found: JsonObject = {}
            for name, value in parts:
                found[name] = value(env)
            return found

        return gather

    def output(self, source: Mapping[str, str] | str | None) -> Value | None:
        """Compile a map from name to expression, or a single expression."""
        return self.value(source) if isinstance(source, str) else self.mapping(source)

    def outputs(self, source: Mapping[str, str] | None) -> tuple[OutputWrite, ...]:
        """Compile a map from state path to expression over `result`; each write has the reducer of its path."""
        return tuple(self.write(path, value) for path, value in (source or {}).items())

    def write(self, target: str, source: str) -> OutputWrite:
        """Compile one write."""
        path = self.path(target)
        return OutputWrite(
            path=path,
            value=self.value(source),
            reduce=self.reducer(path),
            whole=source.strip() in WHOLE,
        )

    def reducer(self, path: Path) -> Reducer:
        """Return the reducer of the longest pattern that matches a path; `*` matches any one key."""
        parts = path.segments
        for pattern, reduce in self.reducers:
            if len(pattern) == len(parts) and all(p in ("*", part) for p, part in zip(pattern, parts, strict=True)):
                return reduce
        return "set"


def formulas_of(workflow: WorkflowDefinition, language: str, *, all_languages: bool = True) -> FormulaCompiler:
    """Return the compiler of texts outside any node."""
    patterns: list[tuple[tuple[str, ...], Reducer]] = [(("messages",), "append")]
    for pattern, field in (workflow.state or {}).items():
        if field.reduce is not None:
            patterns.append((tuple(pattern.split(".")), field.reduce))
    return FormulaCompiler(
        names=names_at_large(workflow),
        sources="\n\n".join(workflow.sources or ()),
        spelling=spelling_of(workflow),
        language=language,
        all_languages=all_languages,
        reducers=tuple(sorted(patterns, key=lambda p: (-len(p[0]), p[0].count("*")))),
    )
