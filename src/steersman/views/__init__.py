"""Pure: data in, something to look at out. **Invariant:** no IO, no clock; what a view shows it was given."""
