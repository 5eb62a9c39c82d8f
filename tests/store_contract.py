"""The promises of every store for readers, as tests: those of a store derive from `StoreContract`, and give a place in it."""

import pickle
from collections.abc import Callable
from typing import NamedTuple

import pytest

from sparklog.store.store import Absent, Damaged, Store


class Place(NamedTuple):
    """A store, and what another program does to its files."""

    store: Store
    put: Callable[[str, bytes], None]
    delete: Callable[[str], None]
    link: Callable[[str, str], None] | None = None
    """A symbolic link, at the first name to the second."""
    hard_link: Callable[[str, str], None] | None = None


class StoreContract:
    """A class that derives from it has a fixture `place`, whose store has the file folder/inner/file: the digits from 0 on."""

    keeps_open_files = True
    """Whether a file that is open can be read after it was deleted."""

    def test_a_file_is_read_at_positions(self, place):
        with place.store.open("folder/inner/file") as file:
            assert file.size == 10
            assert file.read(0, 10) == b"0123456789"
            assert file.read(3, 4) == b"3456"
            assert file.read(8, 4) == b"89", "fewer where the file ends"
            assert file.read(10, 1) == b""
            assert file.read(99, 1) == b""
            assert file.read(0, 0) == b""

    def test_a_file_that_is_open_stays_readable_or_is_absent(self, place):
        with place.store.open("folder/inner/file") as file:
            place.delete("folder/inner/file")
            if self.keeps_open_files:
                assert file.read(0, 10) == b"0123456789"
            else:
                with pytest.raises(Absent):
                    file.read(0, 10)
        with pytest.raises(Absent):
            place.store.open("folder/inner/file")

    def test_a_whole_file_has_at_most_so_many_bytes(self, place):
        assert place.store.read("folder/inner/file", 10) == b"0123456789"
        with pytest.raises(Damaged, match="it has 10 bytes, more than 9"):
            place.store.read("folder/inner/file", 9)
        place.put("empty", b"")
        assert place.store.read("empty", 0) == b""

    @pytest.mark.parametrize("name", ["nothing", "folder/nothing", "nothing/nothing", "folder/inner/file/nothing"])
    def test_what_is_absent(self, place, name):
        # On a disk, no folder is below a file; in S3, one may be.
        with pytest.raises((Absent, Damaged) if "file" in name else Absent):
            place.store.open(name)
        assert not place.store.exists(name)
        assert not place.store.has_folder(name)
        assert place.store.look(name) is None
        assert place.store.tag(name) is None
        assert place.store.names(name) == []
        assert place.store.entries(name) == []
        assert not place.store.are_one(name, "folder/inner/file")

    def test_a_folder_is_not_a_file(self, place):
        with pytest.raises(Damaged, match="not a regular file"):
            place.store.open("folder/inner")
        with pytest.raises(Damaged):
            place.store.read("folder", 100)
        assert place.store.names("folder/inner/file") == []
        for name in ("", "folder", "folder/inner"):
            assert place.store.has_folder(name)
            entry = place.store.look(name)
            assert entry.kind == "folder"
            assert (entry.is_folder, entry.is_file) == (True, False)

    def test_names_in_a_folder(self, place):
        for name in ("b", "a", "folder/c", "folder/a"):
            place.put(name, name.encode())
        assert sorted(place.store.names("")) == ["a", "b", "folder"]
        assert sorted(place.store.names("folder")) == ["a", "c", "inner"]
        entries = place.store.entries("folder")
        assert [(entry.name, entry.kind) for entry in entries] == [("a", "file"), ("c", "file"), ("inner", "folder")]
        assert [entry.bytes for entry in entries if entry.is_file] == [8, 8]
        assert [place.store.look(f"folder/{entry.name}") for entry in entries] == entries
        assert place.store.exists("folder/c")

    def test_a_tag_is_that_of_the_file_and_not_of_its_name(self, place):
        tag = place.store.tag("folder/inner/file")
        assert tag == place.store.tag("folder/inner/file") is not None
        place.put("other", b"0123456789")
        assert place.store.tag("other") != tag
        if place.hard_link:
            place.hard_link("kept", "folder/inner/file")  # so that no other file gets what it has
        place.put("folder/inner/file", b"0123456789")
        assert place.store.tag("folder/inner/file") != tag
        place.delete("folder/inner/file")
        assert place.store.tag("folder/inner/file") is None

    @pytest.mark.parametrize("name", ["../file", "folder/../../file", "/etc/hostname", "folder//inner", "folder/", ".", "..", "./folder"])
    @pytest.mark.parametrize("call", ["open", "look", "exists", "tag", "names", "entries"])
    def test_no_name_leads_out_of_the_root(self, place, call, name):
        with pytest.raises(ValueError, match=r".*"):
            getattr(place.store, call)(name)

    def test_a_file_and_its_tag(self, place):
        assert place.store.read_tagged("folder/inner/file", 10) == (place.store.tag("folder/inner/file"), b"0123456789")
        with pytest.raises(Absent):
            place.store.read_tagged("folder/nothing", 10)
        with pytest.raises(Damaged, match="it has 10 bytes, more than 9"):
            place.store.read_tagged("folder/inner/file", 9)

    def test_above_a_store(self, place):
        if above := place.store.above():
            assert place.store.root.startswith(above.root)
            name = place.store.root.removeprefix(above.root).lstrip("/")
            assert above.read(f"{name}/folder/inner/file", 10) == b"0123456789"

    def test_another_process_gets_the_same_store(self, place):
        again = pickle.loads(pickle.dumps(place.store))
        assert again.root == place.store.root
        assert again.read("folder/inner/file", 10) == b"0123456789"

    def test_locations_are_for_messages(self, place):
        assert place.store.location("folder/file") == f"{place.store.root}/folder/file"


class LinkingStoreContract(StoreContract):
    """That of a store with links, whose place makes them."""

    def test_hard_links(self, place):
        place.hard_link("again", "folder/inner/file")
        place.put("same", b"0123456789")
        assert place.store.are_one("again", "folder/inner/file")
        assert not place.store.are_one("same", "folder/inner/file")
        assert place.store.look("again").links == 2
        assert place.store.look("same").links == 1

    def test_no_link_is_followed(self, place):
        place.put("elsewhere/file", b"secret")
        place.link("link", "elsewhere/file")
        place.link("folder/to", "elsewhere")
        assert place.store.look("link").kind == place.store.look("folder/to").kind == "link"
        assert place.store.exists("link")
        for name in ("link", "folder/to/file", "folder/to"):
            with pytest.raises(Damaged):
                place.store.open(name)
        with pytest.raises(Damaged):
            place.store.names("folder/to")
        with pytest.raises(Damaged):
            place.store.entries("folder/to")
