package console

import (
	"slices"
	"strings"
)

// paging is the links from a page of a list to others of it; "" for none.
type paging struct{ First, Previous, Next string }

const (
	// mostPast is how many pages one can go back one by one. The address has a cursor for each.
	mostPast = 30
	// firstOfList stands for the first page of a list, which has no cursor.
	firstOfList = "-"
)

// paged returns the links of the page of a list at a cursor, "" for its first one. The API's lists lead only forward, so an address has
// the cursors of the pages before. at returns the address of the page at a cursor with these.
func (v *visit) paged(cursor, next string, at func(cursor, past string) string) paging {
	var p paging
	past := pastOf(v.queryParam("past"))
	if cursor == "" {
		cursor, past = firstOfList, nil
	} else {
		p.First = at("", "")
	}
	if n := len(past); n > 0 && past[n-1] == firstOfList {
		p.Previous = p.First
	} else if n > 0 {
		p.Previous = at(past[n-1], strings.Join(past[:n-1], "."))
	}
	if next != "" {
		past = append(past, cursor)
		p.Next = at(next, strings.Join(past[max(0, len(past)-mostPast):], "."))
	}
	return p
}

// pagedBy returns the links of a page of a list that is in memory. at returns the address of the page of a number.
func pagedBy(number, perPage, all int, at func(number int) string) (p paging) {
	if number > 0 {
		p.First, p.Previous = at(0), at(min(number-1, max(all-1, 0)/perPage))
	}
	if (number+1)*perPage < all {
		p.Next = at(number + 1)
	}
	return p
}

// pastOf reads the cursors of an address.
func pastOf(text string) []string {
	past := strings.Split(text, ".")
	if len(past) > mostPast || slices.ContainsFunc(past, func(cursor string) bool { return !isID(cursor) }) {
		return nil
	}
	return past
}
