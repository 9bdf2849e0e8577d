"""Extracts texts from files: text in any encoding, PDF, and the office formats that are archives of XML.

kinds       determines the kind of a file by its content
encodings   decodes bytes to text
pdf, archive, markup   extract the texts of a document
reading     reads a file of any kind; reports the parts that could not be read, and the reasons
limits      the limits of reading a file
__main__    a process that reads one file after the other, with little memory, without secrets or writable files
readers     the pool of these processes, which are started at first use and killed if a file takes too long

Files come from strangers, and the libraries that parse them are large. Files are therefore read in separate processes,
and not in a process that serves requests or runs models.
"""
