"""Tables in a terminal and in a notebook, and the style of figures."""
