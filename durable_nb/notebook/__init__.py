"""The notebook surface: magics, cards, handles. They parse, call one function, return an object."""
