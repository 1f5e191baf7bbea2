"""Digests of things that refer to each other, also in circles.

The digest of a thing covers its text and the digests of what it refers to. In a circle no thing comes first,
so the circle has a digest of its own, made of its members without each other, and every member has that in
its digest. It does not matter where one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from servo.sha256 import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


class Node(NamedTuple, Generic[T]):
    """A thing's text, and what it refers to in the order in which the text does."""

    text: str
    targets: Sequence[T]


class Digests(Generic[T]):
    """Digests of things, each computed once. Things are told apart by identity.

    >>> nodes = {"f": Node("calls g", ["g"]), "g": Node("calls f", ["f"]), "h": Node("alone", [])}
    >>> one, other = Digests(nodes.__getitem__), Digests(nodes.__getitem__)
    >>> [one.of(name) for name in "fgh"] == [other.of(name) for name in "hgf"][::-1]
    True
    >>> one.of("f") == one.of("g")
    False
    """

    def __init__(self, node_of: Callable[[T], Node[T]]) -> None:
        """Remember how to look at a thing."""
        self._node_of = node_of
        # The things are kept so that their ids stay their own.
        self._done: dict[int, tuple[T, str]] = {}

    def of(self, thing: T) -> str:
        """Give the digest of a thing."""
        done = self._done.get(id(thing))
        if done is None:
            node = self._node_of(thing)
            # Most things refer to a few that others have referred to before.
            known = [self._done[id(target)][1] for target in node.targets if id(target) in self._done]
            if len(known) == len(node.targets):
                self._done[id(thing)] = thing, digest("\n".join((node.text, *known)))
            else:
                self._visit(thing)
            done = self._done[id(thing)]
        return done[1]

    def _visit(self, root: T) -> None:
        """Find circles with Tarjan's algorithm, without recursion: chains can be longer than the stack."""
        nodes: dict[int, Node[T]] = {}
        lowest: dict[int, int] = {}
        order: dict[int, int] = {}
        path: list[T] = []
        work: list[tuple[T, Iterator[T]]] = []

        def enter(thing: T) -> None:
            order[id(thing)] = lowest[id(thing)] = len(order)
            nodes[id(thing)] = self._node_of(thing)
            path.append(thing)
            work.append((thing, iter(nodes[id(thing)].targets)))

        enter(root)
        while work:
            thing, targets = work[-1]
            me = id(thing)
            for target in targets:
                if id(target) in self._done:
                    continue
                if id(target) not in order:
                    enter(target)
                    break
                lowest[me] = min(lowest[me], order[id(target)])
            else:
                work.pop()
                if work:
                    parent = id(work[-1][0])
                    lowest[parent] = min(lowest[parent], lowest[me])
                if lowest[me] == order[me]:
                    start = next(at for at in reversed(range(len(path))) if path[at] is thing)
                    self._finish(path[start:], nodes)
                    del path[start:]

    def _finish(self, circle: list[T], nodes: dict[int, Node[T]]) -> None:
        """Give digests to things that refer to each other; what else they refer to has one."""
        alone: list[str] = []
        for thing in circle:
            node = nodes[id(thing)]
            known = (self._done.get(id(target)) for target in node.targets)
            parts = (done[1] if done else "circle" for done in known)
            alone.append(digest("\n".join((node.text, *parts))))
        if len(circle) == 1:
            self._done[id(circle[0])] = circle[0], alone[0]
            return
        shared = digest("\n".join(sorted(alone)))
        for thing, own in zip(circle, alone, strict=True):
            self._done[id(thing)] = thing, digest(f"{own}\n{shared}")


def digest(text: str) -> str:
    """Give the SHA-256 of a text, which may have bytes of file names in it that are not UTF-8.

    >>> digest("")[:8]
    'e3b0c442'
    """
    return sha256_hex(text.encode(errors="surrogatepass"))
