"""A page on which large margins move under the hand, and the same page as a Jupyter widget.

A *scene* (``scene``) is what the page asks about: points, a model from the ``catalogue``, and the
part of the plane that is seen. ``messages`` reads requests, ``session`` answers them in the
background, and ``app`` and ``widget`` carry them between Python and the browser.
"""
