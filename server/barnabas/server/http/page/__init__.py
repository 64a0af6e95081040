"""
The page that shows a broker to people: files by hand, without a build step.

* ``static``: the files. ``index.html`` is the frame, ``app`` has the modules of the program, and
  ``style`` has the style sheets. Nothing in them refers to another host.
* ``assets``: reads them, and answers requests for them.

The page asks the JSON API for all that it shows.
"""
