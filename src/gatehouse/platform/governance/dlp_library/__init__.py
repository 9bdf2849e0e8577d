"""What can be found at all: the library of built-in patterns, and the taxonomy of entity types (reference 3, Pattern
library entry; decisions of the contract: DLP). Nothing here changes but with the release."""
