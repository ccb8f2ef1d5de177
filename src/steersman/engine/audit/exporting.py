"""Exports a run as lines of canonical JSON that other programs can check; docs/reference describes the format.

{"export": 1, "run": …, "machine": …, "entries": n, "payloads": true|false}
{"definition": digest, "body": …}          one for each definition the tape names
{"entry": …, "hash": …}                    sha256 over the canonical bytes of the entry is the hash
{"key": hex}  {"payload": name, "text": …} only when payloads are wanted: name = "p-" + HMAC-SHA256(key, text)[:32]
{"anchor": …}                              as signed
{"end": lines before this one, "hash": of the last entry}
"""

import base64
from collections.abc import Iterator
from typing import Any

import msgspec

from steersman.engine.active_run import require_head
from steersman.errors import StoreBroken, UserError
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.replay import BadEntry, verify_chain
from steersman.ports.anchors import RunAnchors
from steersman.ports.journal import Head, Journal

EXPORT_FORMAT = 1


def export_run(
    journal: Journal, run: str, *, payloads: bool = False, anchors: RunAnchors | None = None
) -> Iterator[bytes]:
    """Yields the lines without newlines; raises StoreBroken at the first entry that does not fit."""
    head = require_head(journal, run)
    line_count, last_hash = 0, ""
    for line in _export_lines(journal, head, payloads, anchors or RunAnchors()):
        line_count, last_hash = line_count + 1, line.get("hash", last_hash)
        yield canonical_bytes(line)
    yield canonical_bytes({"end": line_count, "hash": last_hash})


def _export_lines(
    journal: Journal, head: Head, payloads: bool, anchors: RunAnchors
) -> Iterator[dict[str, Any]]:
    yield {
        "export": EXPORT_FORMAT,
        "run": head.run,
        "machine": head.machine,
        "entries": head.seq,
        "payloads": payloads,
    }
    yield from _export_entries(journal, head)
    if payloads:
        yield from _export_payloads(journal, head.root)
    for anchor in anchors.genuine:
        yield {"anchor": msgspec.to_builtins(anchor)}


def _export_entries(journal: Journal, head: Head) -> Iterator[dict[str, Any]]:
    """Yields entries up to the head of the start; a definition comes before the first entry that names it."""
    defined: set[str] = set()
    for link in verify_chain(journal.rows(head.run), head.run):
        if isinstance(link, BadEntry):
            raise StoreBroken(f"run {head.run}: {link.why}. Run `steersman audit verify {head.run}`")
        entry, hash_ = link
        if entry.definition and entry.definition not in defined:
            defined.add(entry.definition)
            body = journal.definition(entry.definition)
            yield {
                "definition": entry.definition,
                "body": msgspec.json.decode(body) if body is not None else None,
            }
        yield {"entry": entry, "hash": hash_}
        if entry.seq == head.seq:
            return


def _export_payloads(journal: Journal, root: str) -> Iterator[dict[str, Any]]:
    key = journal.key(root)
    if key is None:
        raise UserError(f"the texts of run {root} were pruned. Export it without texts")
    yield {"key": key.hex()}
    for ref in journal.payload_refs(root):
        data = journal.payload(root, ref) or b""
        try:
            yield {"payload": ref, "text": data.decode()}
        except UnicodeDecodeError:
            yield {"payload": ref, "base64": base64.b64encode(data).decode()}
