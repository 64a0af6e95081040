"""
``barnabas doctor``: what on this machine, or in a configuration, would be in a broker's way.

::

    command ---> configuration, machine, directories, listeners  ---> findings
                              |
                              v
                            facts     what the system says; a test says something else
"""
