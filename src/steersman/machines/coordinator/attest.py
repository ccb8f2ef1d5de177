"""A frozen plan as an in-toto Statement in a DSSE envelope: the bytes that are signed, and the check of a signed one.

The signature itself is made and checked by whoever has the key. **Invariant:** an envelope says nothing until its one
signature holds over exactly these bytes and its subjects are exactly these files; each plan and signature has one form.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.review import Manifest
from steersman.judges.text import clip
from steersman.kernel.canonical import canonical, digest, plain
from steersman.machines.coordinator.freeze import MANIFEST

ENVELOPE = "plan.dsse.json"  # beside the frozen files, outside the compared set
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:steersman:frozen-plan:v1"

Holds = Callable[[bytes, str, bytes], bool]  # (signed bytes, key id, signature)


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signature over the envelope's payload."""

    keyid: str
    sig: str


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The DSSE form: payload and signatures in base64."""

    payload: str
    payload_type: str
    signatures: tuple[Signature, ...]


def statement(files: Mapping[str, bytes]) -> bytes:
    """The statement about the files of a frozen plan: each with its digest, and the plan's lineage."""
    listed = msgspec.json.decode(files[MANIFEST], type=Manifest)
    subjects = [{"name": name, "digest": {"sha256": digest(files[name])}} for name in sorted(files)]
    predicate = {"plan_id": listed.plan_id, "intent_id": listed.intent_id, "lineage": plain(listed.lineage)}
    said: dict[str, Any] = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return canonical(said)


def pae(payload_type: str, payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding, in which no two pairs look the same."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope(payload: bytes, keyid: str, sig: bytes) -> bytes:
    """A signed statement as a file."""
    signed = Signature(keyid=keyid, sig=base64.b64encode(sig).decode())
    packed = base64.b64encode(payload).decode()
    return canonical(Envelope(payload=packed, payload_type=PAYLOAD_TYPE, signatures=(signed,)))


def signers(data: bytes) -> tuple[str, ...]:
    """The names of the keys that an envelope says it is signed with; none where it is no envelope."""
    try:
        return tuple(one.keyid for one in msgspec.json.decode(data, type=Envelope).signatures)
    except (msgspec.MsgspecError, UnicodeError):
        return ()


def unsigned() -> Problem:
    """A plan whose signed statement is gone."""
    told = "It is missing: the files fit each other, and nobody says that they are the ones that were frozen."
    return Problem(field=ENVELOPE, message=told, fix="Get the plan again from whoever made it.")


def foreign(signed: tuple[str, ...]) -> Problem:
    """A plan that is signed with other keys than the one that is known."""
    told = f"The files fit each other; they are signed by {clip(', '.join(signed), 400)}, which is not the key here."
    return Problem(
        field=ENVELOPE, message=told, fix="Give the maker's public key (anchor.pub) with --key FILE."
    )


def envelope_problems(data: bytes, files: Mapping[str, bytes], holds: Holds) -> tuple[Problem, ...]:
    """Everything by which an envelope is not a genuine statement about these files; empty when it is."""
    try:
        found = msgspec.json.decode(data, type=Envelope)
        payload = _unpacked(found.payload)
        signed = [(one.keyid, _unpacked(one.sig)) for one in found.signatures]
    except (msgspec.MsgspecError, UnicodeError, ValueError) as error:
        return (_of(f"It is no DSSE envelope: {clip(str(error), 600)}"),)
    return tuple(_differences(data, found, payload, signed, files, holds))


def _differences(
    data: bytes,
    found: Envelope,
    payload: bytes,
    signed: list[tuple[str, bytes]],
    files: Mapping[str, bytes],
    holds: Holds,
) -> Iterator[Problem]:
    if len(signed) != 1:
        yield _of(f"It has {len(signed)} signatures; the one of whoever froze the plan is all it can have.")
    elif envelope(payload, *signed[0]) != data:
        yield _of("Its bytes are not the canonical ones of its statement, key and signature.")
    if found.payload_type != PAYLOAD_TYPE:
        yield _of(f"Its payload is a {clip(found.payload_type, 100)}, not a {PAYLOAD_TYPE}.")
    said = pae(found.payload_type, payload)
    if not all(holds(said, keyid, sig) for keyid, sig in signed):
        yield _of("No signature of this project's key holds over it.")
    if payload != statement(files):
        yield _of("It is about other files than these.")


def _unpacked(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("not base64 in its one form")
    return data


def _of(message: str) -> Problem:
    return Problem(field=ENVELOPE, message=message, fix="Restore the envelope, or plan again.")
