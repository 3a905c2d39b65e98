"""Transcripts of episodes on disk."""
