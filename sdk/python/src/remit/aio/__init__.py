"""Calls the service from asyncio, on asyncio's own streams and without threads. The classes are exported by remit."""
