#!/usr/bin/env python3
"""Takes out of a description by abidw what structs with a struct_size gained at their end since an older description.

Such growth is compatible (quern.h, "Structs"), and abidiff has no rule that lets it pass and nothing else with it.
usage: abi_without_growth.py OLD.abi NEW.abi RESULT.abi
"""
import sys
import xml.etree.ElementTree as ElementTree


def members_of(struct):
    """(name, place in bits, type) of each member in order; type ids are hashes, so equal types have equal ids."""
    found = []
    for member in struct.findall("data-member"):
        variable = member.find("var-decl")
        found.append((variable.get("name"), member.get("layout-offset-in-bits"), variable.get("type-id")))
    return found


def structs_of(tree):
    return {s.get("name"): s for s in tree.iter("class-decl") if s.get("size-in-bits")}


def remove_growth(old, new):
    """Cuts `new` back and says in one line each what was cut."""
    before = structs_of(old)
    for name, struct in structs_of(new).items():
        if name not in before:
            continue
        known, members = members_of(before[name]), members_of(struct)
        is_sized = bool(known) and known[0][0] == "struct_size"
        if not is_sized or len(members) <= len(known) or members[: len(known)] != known:
            continue
        for member in struct.findall("data-member")[len(known):]:
            struct.remove(member)
        struct.set("size-in-bits", before[name].get("size-in-bits"))
        print(f"{name} grew at its end by {', '.join(m[0] for m in members[len(known):])}: compatible")


def main():
    old_path, new_path, result_path = sys.argv[1:]
    old, new = ElementTree.parse(old_path), ElementTree.parse(new_path)
    remove_growth(old, new)
    new.write(result_path)


if __name__ == "__main__":
    main()
