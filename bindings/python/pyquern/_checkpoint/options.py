"""Arguments of a save that the library takes as texts: policy, roles, replay, tags."""
import ctypes
import json
import os


def text_of(value, what):
    """A policy or a rule as JSON: of a dict, a JSON text (it begins with a brace) or the path of a file."""
    if value is None:
        return None
    if isinstance(value, dict):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return value
    if isinstance(value, (str, os.PathLike)):
        with open(value, encoding="utf-8") as file:
            return file.read()
    raise TypeError(f"{what} is a dict, a JSON text or the path of a file, not a {type(value).__name__}")


def policy_text(policy, roles):
    """The policy with {glob: role} before its own roles."""
    text = text_of(policy, "policy")
    if not roles:
        return text
    if not isinstance(roles, dict) or not all(isinstance(item, str) for pair in roles.items() for item in pair):
        raise TypeError("roles is {glob: role}, such as {'ema.*': 'param'}")
    try:
        document = json.loads(text) if text is not None else {}
    except json.JSONDecodeError as problem:
        raise ValueError(f"policy: it is no JSON: {problem}") from None
    own = [{"name": glob, "role": role} for glob, role in roles.items()]
    if not isinstance(document, dict) or not isinstance(document.get("roles", []), list):
        raise ValueError("policy: it is not an object with rules")
    return json.dumps({**document, "roles": own + document.get("roles", [])})


def _tag(name, value):
    if not isinstance(name, str):
        raise TypeError(f"tags have texts for names, not {name!r}")
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"tag '{name}': a tag is a text or a number, not a {type(value).__name__}")
    return str(value) if isinstance(value, int) else repr(float(value))  # tensors and scalars of one element too


def tag_arrays(tags):
    """{name: text or number} as (names, texts, count) of C."""
    from .store import text

    pairs = [(text(name, "a tag's name"), text(_tag(name, value), "a tag")) for name, value in dict(tags or {}).items()]
    make = ctypes.c_char_p * max(len(pairs), 1)
    return make(*(name for name, _ in pairs)), make(*(value for _, value in pairs)), len(pairs)
