"""Extracts texts from files: text in any encoding, PDF, and the office formats that are archives of XML.

kinds       the kind of a file, by its content
encodings   bytes to text
pdf, archive, markup   the texts of a document
reading     a file of any kind; the parts that could not be read, and why
limits      the limits of all this
__main__    a process that reads files one after the other, with little memory, no secrets and no writable file
readers     these processes: started at first use, killed if a file takes too long

Files come from strangers, and the libraries that parse them are large. So they are read in separate processes, not in
one that serves requests or has the models loaded.
"""
