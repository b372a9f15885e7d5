"""The people of the demo site: who may do and read what."""

from dataclasses import dataclass


#: Everybody's password; the tour prints it.
PASSWORD = "demo-site"
ADMIN = "admin"

#: A group whose members read the internal folders.
RESEARCHERS = "researchers"


@dataclass(frozen=True)
class Person:
    """A user of the demo site."""

    id: str
    fullname: str
    roles: tuple[str, ...] = ("Member",)
    groups: tuple[str, ...] = ()


PEOPLE = (
    Person("anna", "Anna Groß", ("Member", "Editor")),
    Person("bert", "Bert Weiß"),
    Person("chen", "陈伟"),
    Person("dora", "Dora Smith", ("Member", "Contributor")),
    Person("emil", "Emil Öztürk", ("Member", "Reviewer")),
    Person("fay", "Fay O'Neill", groups=(RESEARCHERS,)),
    Person("gao", "高芳", groups=(RESEARCHERS,)),
    Person("hana", "Hana Nováková", ("Member", "Site Administrator")),
)

#: Local roles on the folder of each language.
LANGUAGE_ROLES = {
    "de": (("bert", ("Editor", "Reader")),),
    "en": (("dora", ("Contributor", "Editor")),),
    "zh": (("chen", ("Editor", "Reviewer")),),
}

#: Local roles on the internal folder of each language, which is private.
INTERNAL_ROLES = (
    (RESEARCHERS, ("Reader",)),
    ("bert", ("Reader",)),
)
