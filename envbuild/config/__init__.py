"""What the user set, in files of ours and of other tools: read, checked, and put in order."""
