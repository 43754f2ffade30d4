package redisclient

import (
	"encoding/hex"
	"strings"
)

// keyspace spells the keys that the client itself uses, each after the prefix:
//
//	n:none     list    never written: the monitor of the server's role blocks on it (rolemonitor.go)
//	r:{cell}   string  written by Probe; TTL 1 minute
//	w:{tag}    hash    written so that a replica has something to confirm (durability.go); TTL 1 day
type keyspace struct{ prefix string }

func (k keyspace) neverWritten() string { return k.prefix + "n:none" }

// probe returns a key whose hash tag is the cell, as of the keys that the store keeps.
func (k keyspace) probe(cell uint16) string {
	return k.prefix + "r:{" + hex.EncodeToString([]byte{byte(cell >> 8), byte(cell)}) + "}"
}

// mark returns a key in the slot of another.
func (k keyspace) mark(key string) string {
	return k.prefix + "w:{" + hashTag(key) + "}"
}

// hashTag returns the part of a key by which Redis finds its slot: the whole key if it has no tag.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			return tag
		}
	}
	return key
}
