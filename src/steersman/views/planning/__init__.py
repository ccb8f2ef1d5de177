"""Plans as people read them: graphs, Markdown, and the forms that the specification wants a tape in."""
