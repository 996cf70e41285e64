"""Lab: does a crash on purpose kill where it says, and nothing else? Real children and SIGKILL."""
