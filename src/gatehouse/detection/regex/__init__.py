"""RE2 and Python regexes: search over bytes, syntax trees and skeletons."""
