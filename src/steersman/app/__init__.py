"""What every face calls: start, act, answer, list, explain. Typed values in and out; it prints nothing."""
