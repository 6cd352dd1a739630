"""The server, under the name that its users know it by."""

from .process import Server as Server
from .process import ServerError as ServerError
