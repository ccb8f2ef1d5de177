"""A frozen plan as an in-toto statement in a DSSE envelope, and the check whether a folder holds a trusted plan.

The caller holds the keys: it signs, and it checks signatures. **Invariant:** an envelope counts only with exactly one
signature that holds over exactly these bytes, and with exactly these files as subjects. A plan and a signature have one
form. A plan without its signed statement is not trusted, because an attacker who rewrites all files would leave it out.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.review import PlanManifest
from steersman.judges.planning.freeze import MANIFEST_FILE
from steersman.judges.planning.verify import verify_frozen_plan
from steersman.judges.text import clip_text
from steersman.kernel.canonical import canonical_bytes, plain_value, sha256_hex

ENVELOPE_FILE = "plan.dsse.json"  # beside the frozen files, outside the compared set
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:steersman:frozen-plan:v1"

SignatureCheck = Callable[[bytes, str, bytes], bool]  # (signed bytes, key id, signature)


class EnvelopeSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signature over the envelope's payload."""

    keyid: str
    sig: str


class DsseEnvelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The DSSE form: payload and signatures in base64."""

    payload: str
    payload_type: str
    signatures: tuple[EnvelopeSignature, ...]


def plan_statement(files: Mapping[str, bytes]) -> bytes:
    """The statement about the files of a frozen plan: each with its digest, and the plan's lineage."""
    listed = msgspec.json.decode(files[MANIFEST_FILE], type=PlanManifest)
    subjects = [{"name": name, "digest": {"sha256": sha256_hex(files[name])}} for name in sorted(files)]
    predicate = {
        "plan_id": listed.plan_id,
        "intent_id": listed.intent_id,
        "lineage": plain_value(listed.lineage),
    }
    statement_data: dict[str, Any] = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    return canonical_bytes(statement_data)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding, in which no two pairs look the same."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def signed_envelope(payload: bytes, keyid: str, sig: bytes) -> bytes:
    """A signed statement as a file."""
    signed = EnvelopeSignature(keyid=keyid, sig=base64.b64encode(sig).decode())
    packed = base64.b64encode(payload).decode()
    return canonical_bytes(DsseEnvelope(payload=packed, payload_type=PAYLOAD_TYPE, signatures=(signed,)))


def envelope_signers(data: bytes) -> tuple[str, ...]:
    """The names of the keys that an envelope says it is signed with; none where it is no envelope."""
    try:
        return tuple(signature.keyid for signature in msgspec.json.decode(data, type=DsseEnvelope).signatures)
    except (msgspec.MsgspecError, UnicodeError):
        return ()


def missing_envelope_problem() -> DocumentProblem:
    """A plan whose signed statement is gone."""
    message = "It is missing. The files fit each other, but no signature shows that these files were frozen."
    return DocumentProblem(field=ENVELOPE_FILE, message=message, fix="Get the plan again from its author.")


def foreign_signer_problem(signed: tuple[str, ...]) -> DocumentProblem:
    """A plan that is signed with other keys than the one that is known."""
    message = f"The files fit each other, but they are signed by {clip_text(', '.join(signed), 400)}, and that is not the known key."
    return DocumentProblem(
        field=ENVELOPE_FILE, message=message, fix="Give the maker's public key (anchor.pub) with --key FILE."
    )


def find_envelope_problems(
    data: bytes, files: Mapping[str, bytes], holds: SignatureCheck
) -> tuple[DocumentProblem, ...]:
    """Everything by which an envelope is not a genuine statement about these files; empty when it is."""
    try:
        envelope_data = msgspec.json.decode(data, type=DsseEnvelope)
        payload = _decode_strict_base64(envelope_data.payload)
        signed = [(s.keyid, _decode_strict_base64(s.sig)) for s in envelope_data.signatures]
    except (msgspec.MsgspecError, UnicodeError, ValueError) as error:
        return (_envelope_problem(f"It is no DSSE envelope: {clip_text(str(error), 600)}"),)
    return tuple(_find_envelope_differences(data, envelope_data, payload, signed, files, holds))


def _find_envelope_differences(
    data: bytes,
    envelope_data: DsseEnvelope,
    payload: bytes,
    signed: list[tuple[str, bytes]],
    files: Mapping[str, bytes],
    holds: SignatureCheck,
) -> Iterator[DocumentProblem]:
    if len(signed) != 1:
        yield _envelope_problem(
            f"It has {len(signed)} signatures. It must have exactly one: that of the author."
        )
    elif signed_envelope(payload, *signed[0]) != data:
        yield _envelope_problem("Its bytes are not the canonical ones of its statement, key and signature.")
    if envelope_data.payload_type != PAYLOAD_TYPE:
        yield _envelope_problem(
            f"Its payload is a {clip_text(envelope_data.payload_type, 100)}, not a {PAYLOAD_TYPE}."
        )
    signed_bytes = pre_authentication_encoding(envelope_data.payload_type, payload)
    if not all(holds(signed_bytes, keyid, sig) for keyid, sig in signed):
        yield _envelope_problem("No signature of this project's key holds over it.")
    if payload != plan_statement(files):
        yield _envelope_problem("It describes other files than these.")


def _decode_strict_base64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("not base64 in its one form")
    return data


def _envelope_problem(message: str) -> DocumentProblem:
    return DocumentProblem(field=ENVELOPE_FILE, message=message, fix="Restore the envelope, or plan again.")


class PlanTrust(NamedTuple):
    """Everything that speaks against the plan, and what its signature says."""

    problems: tuple[DocumentProblem, ...]
    signature: str


class TrustedKey(NamedTuple):
    """A public key that is known here, and the check of a signature: (key, bytes, signature) -> yes or no."""

    public: str
    verifies: Callable[[str, bytes, bytes], bool]

    def holds(self, data: bytes, name: str, signature: bytes) -> bool:
        """Whether it was this key that has signed."""
        return bool(self.public) and name == self.public and self.verifies(name, data, signature)


def check_plan_trust(files: Mapping[str, bytes], key: TrustedKey) -> PlanTrust:
    """The files of a folder, the signed statement among them, held against each other and against a key."""
    frozen = {name: data for name, data in files.items() if name != ENVELOPE_FILE}
    if problems := verify_frozen_plan(frozen):
        return PlanTrust(problems, "not looked at: the files differ")
    if ENVELOPE_FILE not in files:
        return PlanTrust((missing_envelope_problem(),), "missing")
    wrong = find_envelope_problems(files[ENVELOPE_FILE], frozen, key.holds)
    if not wrong:
        return PlanTrust((), "holds")
    signed = envelope_signers(files[ENVELOPE_FILE])
    if signed and key.public not in signed:
        return PlanTrust((foreign_signer_problem(signed),), "by a key that is not known here")
    return PlanTrust(wrong, "does not hold")
