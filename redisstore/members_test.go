package redisstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

func TestAMemberDecodesToItsID(t *testing.T) {
	t.Parallel()
	agent := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	id := uuid.MustParse("018f3c2a-b4d5-7e07-91a2-b3c4d5e6c3f1")
	for _, test := range []struct {
		name    string
		members kernel.Members
		want    []byte
	}{
		{"of an organization", kernel.Members{}, id[:]},
		{"of an agent's cell", kernel.OfCell(agent), id[:14]},
	} {
		member := test.members.Of(id)
		if !bytes.Equal(member, test.want) || test.members.Below(id) != string(test.want) {
			t.Errorf("%s: %x, want %x", test.name, member, test.want)
		}
		if back, err := test.members.ID(string(member)); back != id || err != nil {
			t.Errorf("%s: %s, %v, want %s", test.name, back, err, id)
		}
		wantEqual(t, test.name+": what the newest are below", test.members.Below(uuid.Nil), "")
	}
}

func TestAMemberOfAnotherLengthIsAnError(t *testing.T) {
	t.Parallel()
	for _, m := range []kernel.Members{{}, kernel.OfCell(NewRootID())} {
		for n := range 20 {
			_, err := m.ID(string(make([]byte, n)))
			if right := n+len(m.Cell) == 16; errors.Is(err, errReply) == right {
				t.Errorf("%d bytes and %d of a cell: %v", n, len(m.Cell), err)
			}
			r := &reply{Values: []any{[]any{string(make([]byte, n))}}}
			m.IDs(r, 0)
			if errors.Is(r.Err, errReply) != errors.Is(err, errReply) {
				t.Errorf("%d bytes in a reply: %v, want %v", n, r.Err, err)
			}
			size := 16 - len(m.Cell)
			packed := &reply{}
			if ids := m.Packed(packed, string(make([]byte, n))); errors.Is(packed.Err, errReply) != (n%size > 0) || packed.Err == nil && len(ids) != n/size {
				t.Errorf("%d bytes in a text: %v, %v", n, ids, packed.Err)
			}
		}
	}
}
