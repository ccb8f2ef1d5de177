"""Pure verdicts on planning documents: intents, policies, registries, rules and risks.

**Invariant:** nothing here reads a file, a clock or chance. The caller reads documents and passes plain values.
"""
