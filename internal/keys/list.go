package keys

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"remit/redisstore"
)

type listKeys struct{ storeFlags }

// Run prints one line per stored key.
func (c *listKeys) Run() error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tKEY\tSTATE\tCREATED\tSIGNS FROM\tENDS")
	for _, kind := range []redisstore.KeyKind{redisstore.SigningKeys, redisstore.TokenKeys} {
		records, now, err := store.Keys(context.Background(), kind)
		if err != nil {
			return err
		}
		for i, record := range signerFirst(records, now) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, record.ID, stateOf(record, i == 0, now),
				timeText(record.Created), timeText(record.SignsFrom), timeText(record.Ends))
		}
	}
	return table.Flush()
}

func stateOf(record redisstore.KeyRecord, first bool, now time.Time) string {
	switch {
	case record.SignsFrom.After(now):
		return "published"
	case first:
		return "signs"
	}
	return "verifies"
}
