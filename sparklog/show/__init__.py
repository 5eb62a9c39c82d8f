"""How what the library finds is shown: tables in a terminal and in a notebook, and the style of figures."""
