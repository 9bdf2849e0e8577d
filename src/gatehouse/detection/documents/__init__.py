"""Files in, texts out: text in any encoding, PDF, and the office formats that are archives of XML.

kinds       what a file is, by its content
encodings   bytes as text
pdf, archive, markup   what is read of a document
reading     a file of any kind; what could not be read of it, and why
limits      what all of that may take
__main__    a process that reads one file after the other, with little memory, no secrets and nothing to write to
readers     these processes: started when they are needed, killed where a file takes too long

A file is a stranger's, and libraries that parse it are large. So it is read in a process of its own, never in one that
serves requests or holds models.
"""
