"""The file that an outpost's `GET /admin/config/export` answers, taken over into the organization's tenant on the
platform (reference 1, What the service does, 8). Here it is read, and refused where it is none; what it holds is the
platform's to judge.
"""
