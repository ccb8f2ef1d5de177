"""Everything that is kept on disk: the store, artifacts, documents, anchors, plans."""
