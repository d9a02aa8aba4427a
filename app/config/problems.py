"""From what the model refuses to what the operator reads: file, line, path, the value, the remedy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from app.config import shape, suggest
from app.config.draft import Draft, Path, Value, shown_key, shown_value, value_at
from app.config.groups import GROUP_MODELS, MISSING, kind_of
from app.config.model import Config
from app.config.values import Refused
from app.domain.nodegroup.spec import GROUP_NAME
from app.errors import Problem

_DICT_KEY = "[key]"
_SHORTEST_SECRET = 6  # replacing shorter ones would garble sentences more than it protects
_FEW = 12

_SENTENCES: Mapping[str, str] = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "string_type": "must be text",
    "dict_type": "must be a mapping of keys and values",
    "model_type": "must be a mapping of keys and values",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """One thing that the model refuses, in pydantic's terms, at a path of the draft."""

    path: Path
    type: str
    message: str
    context: Mapping[str, object]

    @property
    def refused(self) -> Refused | None:
        """Our own words, if it was one of our rules."""
        error = self.context.get("error")
        return error if isinstance(error, Refused) else None

    @property
    def is_missing(self) -> bool:
        """True if nothing is there to be refused."""
        return self.type == "missing" or (self.refused is not None and self.refused.must == MISSING)


def validate(draft: Draft, defaults: dict[str, Value] | None) -> Config | None:
    """Build the configuration, or note in the draft everything that the model refuses."""
    refusals: tuple[_Refusal, ...] = ()
    config = None
    if defaults is not None:
        try:
            GROUP_MODELS[kind_of(defaults)].model_validate(defaults)
        except ValidationError as error:
            refusals = tuple(one for one in _refusals(error, (shape.DEFAULTS,)) if not one.is_missing)
    try:
        config = Config.model_validate(draft.data)
    except ValidationError as error:
        refusals += _refusals(error, ())
    for refusal in refusals:
        _translate(draft, refusal, defaults)
    return config


def _refusals(error: ValidationError, root: Path) -> tuple[_Refusal, ...]:
    return tuple(
        _Refusal(path=root + _path(one["loc"]), type=one["type"], message=one["msg"], context=one.get("ctx", {}))
        for one in error.errors(include_url=False, include_input=False)
    )


def in_file_order(problems: Iterable[Problem], source: str, secrets: Iterable[str]) -> tuple[Problem, ...]:
    """Each problem once, the file's own first and by line, and none with a secret in it, whoever wrote it there."""
    hidden = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
    told = dict.fromkeys(_without(problem, hidden) for problem in problems)
    return tuple(sorted(told, key=lambda one: (one.source != source, one.source, one.line or 0)))


def _without(problem: Problem, secrets: list[str]) -> Problem:
    path, message = problem.path, problem.message
    for secret in secrets:
        path, message = path.replace(secret, "***"), message.replace(secret, "***")
    return Problem(source=problem.source, line=problem.line, path=path, message=message)


def _path(loc: tuple[int | str, ...]) -> Path:
    """Pydantic's location without the kind of group that it tried."""
    if len(loc) > 2 and loc[0] == shape.GROUPS and loc[2] in GROUP_MODELS:  # noqa: PLR2004 - after group and name
        return loc[:2] + loc[3:]
    return loc


def _translate(draft: Draft, refusal: _Refusal, defaults: dict[str, Value] | None) -> None:
    path, refused = refusal.path, refusal.refused
    if refused is not None and refused.fields:
        blamed = _blamed(draft, path[:-1], refused)
        message = str(refused)
    elif refused is not None and path[-1:] == (_DICT_KEY,):
        blamed = path[:-1]
        message = _about_key(draft, blamed, refused)
    else:
        blamed = path
        message = _about_value(draft, refusal, value_at({**draft.data, shape.DEFAULTS: defaults}, path))
    if not draft.is_spoiled(blamed):
        draft.blame(blamed, message)


def _blamed(draft: Draft, section: Path, refused: Refused) -> Path:
    """Of several values that do not go together, the first that stands here; rather not one from `defaults`."""
    candidates = [section + field for field in refused.fields]
    written = [path for path in candidates if draft.is_written(path)]
    own = [path for path in written if draft.origin(path)[:1] == path[:1]]
    return (own + written + candidates)[0]


def _about_value(draft: Draft, refusal: _Refusal, value: Value) -> str:
    """`must be this, is that: remedy`."""
    must, remedy = _sentence(refusal, value)
    shown = "" if refusal.type in {"missing", "extra_forbidden"} else _shown(draft, refusal.path, value)
    return must + (f", is {shown}" if shown else "") + (f": {remedy}" if remedy else "")


def _sentence(refusal: _Refusal, value: Value) -> tuple[str, str]:
    """What the value must be, and the remedy."""
    if refusal.refused is not None:
        return refusal.refused.must, refusal.refused.remedy
    match refusal.type:
        case "missing":
            field = shape.field_at(refusal.path)
            return "is missing", (field.description or "") if field is not None else ""
        case "extra_forbidden":
            return "is not a known key", _meant(refusal.path)
        case "literal_error" | "enum":
            return _one_of(shape.words(refusal.path), value)
        case kind if kind in _SENTENCES:
            return _SENTENCES[kind].format(**refusal.context), ""
        case _:
            return "is not valid", refusal.message


def _one_of(words: tuple[str, ...], value: Value) -> tuple[str, str]:
    close = suggest.nearest(value, words) if isinstance(value, str) else None
    return f"must be {', '.join(words[:-1])} or {words[-1]}", f"did you mean {close}?" if close else ""


def _meant(path: Path) -> str:
    key, known = str(path[-1]), shape.known_keys(path[:-1])
    if shown_key(key) != key:
        return "a space is missing after the colon"
    if key in known:
        return "it belongs to the other kind of node group"
    close = suggest.nearest(key, known)
    if close is not None:
        return f"did you mean {close}?"
    return f"known are {', '.join(known)}" if len(known) <= _FEW else "docs/configuration.md lists the known ones"


def _about_key(draft: Draft, path: Path, refused: Refused) -> str:
    if len(path) == 2 and path[0] == shape.GROUPS:  # noqa: PLR2004 - the group's name
        return f"{refused.must}: call it {_better_names(draft)[str(path[1])]}"
    return str(refused)


def _better_names(draft: Draft) -> dict[str, str]:
    """A valid name for every group that has none, all different."""
    names = draft.section(shape.GROUPS) or {}
    taken = {name for name in names if GROUP_NAME.fullmatch(name)}
    better: dict[str, str] = {}
    for name in names:
        if name not in taken:
            better[name] = suggest.group_name(name, taken | set(better.values()))
    return better


def _shown(draft: Draft, path: Path, value: Value) -> str:
    """The offending value as a message shows it; empty for secrets."""
    if shape.is_secret(path):
        return ""
    written = draft.locate(path).written
    if draft.origin(path) in draft.foreign:
        return f"the content of {written}" if written else "something else"
    return shown_value(value, written)
