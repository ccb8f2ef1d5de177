"""The user's repository through the git command line."""
