"""
The order of a crowded bin of ``java.util.HashMap``.

A bin with more than eight keys becomes a red-black tree by hash code, whose nodes are in a list
too. The list is what an iterator follows, and the tree changes it: the root comes first, and a new
key comes after the node that it hangs from.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from barnabas.coordination.groups.assignors.java_order.hashing import signed

K = TypeVar("K")

LEFT: Final = 0
RIGHT: Final = 1


class _Node(Generic[K]):
    """
    A key in the tree.
    """

    __slots__ = ("children", "is_red", "key", "parent", "rank")

    def __init__(self, key: K, rank: Any) -> None:
        self.key = key
        self.rank = rank
        self.children: list[_Node[K] | None] = [None, None]
        self.parent: _Node[K] | None = None
        self.is_red = True


class TreeBin(Generic[K]):
    """
    Keys of a bin that Java has made a tree of.

    Keys are ordered by their hash code, then by themselves (their ``__lt__``).
    """

    __slots__ = ("_hash_of", "_nodes", "_order", "_root")

    def __init__(self, keys: Iterable[K], hash_of: Callable[[K], int]) -> None:
        """
        Args:
            keys: in the order of the list that the tree is made of.
            hash_of: the hash code of a key as the table uses it, unsigned.
        """
        self._hash_of = hash_of
        self._root: _Node[K] | None = None
        self._nodes: dict[K, _Node[K]] = {}
        self._order: list[_Node[K]] = []
        for key in keys:
            node = self._new_node(key)
            self._insert(node)
            self._order.append(node)
        self._move_root_to_front()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[K]:
        return (node.key for node in self._order)

    def add(self, key: K) -> None:
        """
        Add a key that is not there yet.
        """
        node = self._new_node(key)
        parent = self._insert(node)
        after = 0 if parent is None else self._order.index(parent) + 1
        self._order.insert(after, node)
        self._move_root_to_front()

    def remove(self, key: K) -> bool:
        """
        Remove a key, and say whether the rest is a tree still.
        """
        node = self._nodes.pop(key)
        self._order.remove(node)
        if self._is_small():
            return False
        self._delete(node)
        self._move_root_to_front()
        return True

    def _new_node(self, key: K) -> _Node[K]:
        node = _Node(key, (signed(self._hash_of(key)), key))
        self._nodes[key] = node
        return node

    def _is_small(self) -> bool:
        """
        Whether the tree is so small that Java makes a plain bin of it (2 to 6 nodes).
        """
        root = self._root
        if root is None:
            return True
        left, right = root.children
        return left is None or right is None or left.children[LEFT] is None

    def _move_root_to_front(self) -> None:
        root = self._root
        if root is not None and self._order[0] is not root:
            self._order.remove(root)
            self._order.insert(0, root)

    # The red-black tree

    def _insert(self, node: _Node[K]) -> _Node[K] | None:
        """
        Put the node into the tree, and return the one that it hung from at first.
        """
        parent: _Node[K] | None = None
        below = self._root
        while below is not None:
            parent = below
            below = below.children[RIGHT if node.rank > below.rank else LEFT]
        node.parent = parent
        if parent is None:
            self._root = node
        else:
            parent.children[RIGHT if node.rank > parent.rank else LEFT] = node
        self._repair_after_insertion(node)
        return parent

    def _repair_after_insertion(self, node: _Node[K]) -> None:
        while (parent := node.parent) is not None and parent.is_red:
            grandparent = parent.parent
            assert grandparent is not None, "the root is black"
            side = _side_of(parent, grandparent)
            uncle = grandparent.children[1 - side]
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                grandparent.is_red = True
                node = grandparent
                continue
            if node is parent.children[1 - side]:
                self._rotate(parent, side)
                node, parent = parent, node
            parent.is_red = False
            grandparent.is_red = True
            self._rotate(grandparent, 1 - side)
        assert self._root is not None, "a node was inserted"
        self._root.is_red = False

    def _delete(self, node: _Node[K]) -> None:
        """
        Take the node out of the tree, its successor in its place if it has two children.
        """
        left, right = node.children
        if left is not None and right is not None:
            successor = right
            while (lower := successor.children[LEFT]) is not None:
                successor = lower
            self._swap_places(node, successor)
        child = node.children[LEFT] or node.children[RIGHT]
        if child is not None:
            self._replace(node, child)
            if not node.is_red:
                self._repair_after_deletion(child)
            return
        if not node.is_red:
            self._repair_after_deletion(node)
        self._replace(node, None)

    def _repair_after_deletion(self, node: _Node[K]) -> None:
        while node is not self._root and not node.is_red:
            parent = node.parent
            assert parent is not None, "only the root has none"
            side = _side_of(node, parent)
            sibling = parent.children[1 - side]
            if sibling is not None and sibling.is_red:
                sibling.is_red = False
                parent.is_red = True
                self._rotate(parent, side)
                sibling = parent.children[1 - side]
            assert sibling is not None, "the other side is as high in black nodes"
            near, far = sibling.children[side], sibling.children[1 - side]
            if not _is_red(near) and not _is_red(far):
                sibling.is_red = True
                node = parent
                continue
            if near is not None and not _is_red(far):
                near.is_red = False
                sibling.is_red = True
                self._rotate(sibling, 1 - side)
                sibling, far = near, sibling
            assert far is not None, "one of the children is red"
            sibling.is_red = parent.is_red
            parent.is_red = far.is_red = False
            self._rotate(parent, side)
            break
        else:
            node.is_red = False

    def _rotate(self, node: _Node[K], side: int) -> None:
        """
        Turn the node down to *side*: its child of the other side takes its place.
        """
        child = node.children[1 - side]
        assert child is not None, "there is one to turn up"
        inner = child.children[side]
        node.children[1 - side] = inner
        if inner is not None:
            inner.parent = node
        self._replace(node, child)
        child.children[side] = node
        node.parent = child

    def _replace(self, node: _Node[K], other: _Node[K] | None) -> None:
        parent = node.parent
        if parent is None:
            self._root = other
        else:
            parent.children[_side_of(node, parent)] = other
        if other is not None:
            other.parent = parent

    def _swap_places(self, node: _Node[K], successor: _Node[K]) -> None:
        """
        Let a node and its successor change places, and colours, in the tree.
        """
        node.is_red, successor.is_red = successor.is_red, node.is_red
        below = successor.children[RIGHT]
        right = node.children[RIGHT]
        above = successor.parent
        self._replace(node, successor)
        _hang(node.children[LEFT], successor, LEFT)
        if successor is right:
            _hang(node, successor, RIGHT)
        else:
            assert above is not None, "it lies below the node"
            _hang(right, successor, RIGHT)
            _hang(node, above, LEFT)
        node.children[LEFT] = None
        _hang(below, node, RIGHT)


def _is_red(node: _Node[K] | None) -> bool:
    return node is not None and node.is_red


def _side_of(node: _Node[K], parent: _Node[K]) -> int:
    return LEFT if parent.children[LEFT] is node else RIGHT


def _hang(node: _Node[K] | None, parent: _Node[K], side: int) -> None:
    parent.children[side] = node
    if node is not None:
        node.parent = parent
