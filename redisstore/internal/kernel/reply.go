package kernel

import (
	"fmt"
	"math"
	"strconv"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
)

// MoneyAt reads an amount.
func MoneyAt(r *redisclient.Reply, i int) money.MicroUSD { return money.MicroUSD(r.Number(i)) }

// GenerationAt reads the generation of a refresh token.
func GenerationAt(r *redisclient.Reply, i int) uint32 {
	number := r.Number(i)
	if (number < 1 || number > math.MaxUint32) && r.Err == nil {
		r.Err = fmt.Errorf("%w: no generation is %d", redisclient.ErrReply, number)
	}
	return uint32(number)
}

// CutID reads the id at the beginning of a reply's last value, and returns what follows it.
func CutID(r *redisclient.Reply, i int) (uuid.UUID, string) {
	var id uuid.UUID
	text := r.Rest(i)
	if copy(id[:], text) < len(id) {
		r.Err = fmt.Errorf("%w: no id at %d", redisclient.ErrReply, i)
		return uuid.Nil, ""
	}
	return id, text[len(id):]
}

// IDOrNilAt reads an id from its 16 bytes or its text, uuid.Nil from "".
func IDOrNilAt(r *redisclient.Reply, i int) uuid.UUID {
	switch text := r.Text(i); len(text) {
	case 0:
		return uuid.Nil
	case len(uuid.Nil):
		return r.ID(i)
	default:
		id, err := uuid.Parse(text)
		if err != nil {
			r.Err = redisclient.ErrReply
		}
		return id
	}
}

// NumbersOf reads so many whole numbers.
func NumbersOf(words []string, count int) ([]int64, error) {
	if len(words) != count {
		return nil, fmt.Errorf("%w: %d numbers, not %d", redisclient.ErrReply, len(words), count)
	}
	numbers := make([]int64, count)
	for i, word := range words {
		var err error
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: %q is no number", redisclient.ErrReply, word)
		}
	}
	return numbers, nil
}
