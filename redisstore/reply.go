package redisstore

import (
	"fmt"
	"math"

	"github.com/google/uuid"
	"remit/money"
)

// readReply reads a script's reply that is part of another reply. Its error is the refusal for the reply's code.
func readReply(answer any) (*reply, error) {
	r := &reply{}
	if err := refusals.Read(r, answer); err != nil {
		return nil, err
	}
	return r, nil
}

func moneyAt(r *reply, i int) money.MicroUSD { return money.MicroUSD(r.Number(i)) }

// generationAt reads the generation of a refresh token.
func generationAt(r *reply, i int) uint32 {
	number := r.Number(i)
	if (number < 1 || number > math.MaxUint32) && r.Err == nil {
		r.Err = fmt.Errorf("%w: no generation is %d", errReply, number)
	}
	return uint32(number)
}

// cutID reads the id at the beginning of a reply's last value, and returns what follows it.
func cutID(r *reply, i int) (uuid.UUID, string) {
	var id uuid.UUID
	text := r.Rest(i)
	if copy(id[:], text) < len(id) {
		r.Err = fmt.Errorf("%w: no id at %d", errReply, i)
		return uuid.Nil, ""
	}
	return id, text[len(id):]
}

// idOrNilAt reads an id from its 16 bytes or its text, uuid.Nil from "".
func idOrNilAt(r *reply, i int) uuid.UUID {
	switch text := r.Text(i); len(text) {
	case 0:
		return uuid.Nil
	case len(uuid.Nil):
		return r.ID(i)
	default:
		id, err := uuid.Parse(text)
		if err != nil {
			r.Err = errReply
		}
		return id
	}
}
