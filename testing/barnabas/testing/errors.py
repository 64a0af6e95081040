"""
What can go wrong between a test and its broker.

::

    BrokerError
      NotRunning       the broker is not started yet, or is stopped
      BrokerDied       the process of the broker has ended
      StartFailed      the broker could not start
      InvalidConfig    an option is unknown, or its value is not acceptable
      UnknownTopic     no topic has that name, or no partition that number
      TopicExists      a topic has that name already
      InvalidTopic     the name, or the number of partitions, is not acceptable
      AppendRefused    the log does not take the records
      InvalidFault     no API or no error has that name
      WaitTimeout      a condition did not come true in time; also a TimeoutError
"""

from __future__ import annotations

from typing import Any


class BrokerError(Exception):
    """
    The broker cannot do what the test asks for.
    """

    def __init__(self, sentence: str, hint: str = "") -> None:
        """
        Args:
            sentence: what is wrong.
            hint: what to do about it in Python; other languages have their own.
        """
        # All arguments, or a copy of the error that went through a pipe would lack them.
        super().__init__(*filter(None, (sentence, hint)))
        self.sentence = sentence
        self._hint = hint

    def __str__(self) -> str:
        return f"{self.sentence}; {self._hint}" if self._hint else self.sentence


def hides_frame(info: Any) -> bool:
    """
    Whether pytest leaves out the frames of this package from a traceback: those of an error that a
    test has caused, whose sentence says all.

    Args:
        info: pytest's ``ExceptionInfo``.
    """
    return isinstance(info.value, BrokerError)


class NotRunning(BrokerError):
    """
    The broker is not started yet, or is stopped.
    """


class BrokerDied(BrokerError):
    """
    The process of the broker has ended by itself, or was killed.
    """


class StartFailed(BrokerError):
    """
    The broker could not start; the cause is the error of the server.
    """


class InvalidConfig(BrokerError):
    """
    An option is unknown, or its value is not acceptable.
    """


class UnknownTopic(BrokerError):
    """
    No topic has that name, or no partition of it that number.
    """


class TopicExists(BrokerError):
    """
    A topic has that name already.
    """


class InvalidTopic(BrokerError):
    """
    The name of a topic, or its number of partitions, is not acceptable.
    """


class AppendRefused(BrokerError):
    """
    The log does not take the records, for the reason that a producer would get.
    """


class InvalidFault(BrokerError):
    """
    No API or no error has that name.
    """


class WaitTimeout(BrokerError, TimeoutError):
    """
    A condition did not come true in time.
    """
