// Package keys gives an instance its keyring: the keys that sign access tokens, the keys that derive refresh tokens, and
// the issuer. It also holds the commands of `remit keys`.
//
// Keys come from files (Flags), or else from Redis, where all instances share them: the first instance generates and
// stores a key of each kind, and `remit keys rotate` adds others. A Redis that stores keys can forge tokens unless
// they are encrypted with a key from a file (--key-encryption-key).
//
//	source, err := keys.Open(flags, issuer, store, log)
//	keyring, err := source.Keyring(ctx)
//
// When Source.InRedis is true, call Keyring again every PollInterval: a rotated key is published for at least twice as
// long before it signs, so every instance can verify its tokens by then.
package keys
