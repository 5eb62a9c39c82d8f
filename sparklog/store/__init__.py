"""Where the files of a root are kept, and how they are read there. No other package opens, lists or looks at a file of a root."""
