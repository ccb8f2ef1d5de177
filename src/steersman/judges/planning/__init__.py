"""Pure verdicts on planning documents: intents, policies, registries, rules, risks.

**Invariant:** no file, clock or chance; a document is a plain value that somebody else has read.
"""
