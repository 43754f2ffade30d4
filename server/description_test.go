package server_test

import (
	"fmt"

	"remit/test/conformance"
)

// everyOperationWasSeen says whether every operation of openapi.json has succeeded somewhere in the suite, and tells which
// errors were never given.
func everyOperationWasSeen() bool {
	suite, err := conformance.Shared()
	if err != nil {
		fmt.Println(err)
		return false
	}
	operations, refusals := suite.Unseen()
	fmt.Printf("openapi.json: %d exchanges judged; %d errors of operations were never given\n", suite.Judged(), len(refusals))
	for _, refusal := range refusals {
		fmt.Println("  never given:", refusal)
	}
	for _, operation := range operations {
		fmt.Println("openapi.json: no test carries out", operation)
	}
	return len(operations) == 0
}
