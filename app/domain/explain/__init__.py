"""Answers in plain words, made from the log: why is this so?"""
