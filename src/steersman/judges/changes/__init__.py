"""What in a change needs a person before its checks count."""
